# SPDX-License-Identifier: Apache-2.0
"""A depthwise convolution and the mean of each channel of its result: one dispatch on a GPU. The convolution's result
is that of its own kernel bit for bit, and a mean is off by no more than the roundings of its sum."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace

import pytest
import torch
from support.device import is_llvmpipe
from support.dispatches import kernels
from support.one_call import OneCall
from support.squeeze_excite import SqueezeExcite
from torch import nn

import pumice

KERNEL = "kernel=conv_depthwise"  # which a CPU driver gets so, too
FUSED = "conv2d_depthwise_mean["


@dataclass(frozen=True)
class Net:
    channels: int
    height: int
    width: int
    kernel: tuple[int, int] = (3, 3)
    stride: int = 1
    act: int = 0
    bias: bool = True
    dtype: torch.dtype = torch.float32
    reader: str = "mean"
    keepdim: bool = True
    before: bool = False  # another reader of the convolution stands before the mean
    sizes: tuple[str, ...] = ()  # of an image, which are symbols
    dims: tuple[int, ...] = (2, 3)
    batch: int | str = "n"
    means: int = 1
    declared: tuple[int, ...] = ()  # what the file says of the convolution's result; else what is right

    def file(self) -> bytes:
        torch.manual_seed(8)
        program = OneCall()
        symbols = {"n": self.batch, "h": self.height, "w": self.width} | {
            name: name for name in self.sizes if name != "n"
        }
        out = [
            (size + 2 * (k // 2) - k) // self.stride + 1 if isinstance(size, int) else size
            for size, k in zip((symbols["h"], symbols["w"]), self.kernel, strict=True)
        ]
        x = program.input(self.dtype, [symbols["n"], self.channels, symbols["h"], symbols["w"]])
        taps = self.kernel[0] * self.kernel[1]
        weight = (torch.randn(self.channels, taps) * taps**-0.5).to(self.dtype)
        bias = program.constant(torch.randn(self.channels)) if self.bias else None
        pads = [self.kernel[0] // 2, self.kernel[1] // 2] * 2
        geometry = [list(self.kernel), [self.stride] * 2, pads, [1, 1], self.channels, False, self.act]
        dims = list(self.declared) or [symbols["n"], self.channels, *out]
        y = program.call("conv2d", [x, program.constant(weight), bias, *geometry], self.dtype, dims)
        if self.before:
            program.call("relu", [y], self.dtype, dims)
        dims = [symbols["n"], self.channels, *out]
        kept = [1 if d in self.dims else size for d, size in enumerate(dims) if self.keepdim or d not in self.dims]
        for _ in range(self.means):
            program.call(self.reader, [y, list(self.dims), self.keepdim], self.dtype, kept)
        return program.bytes()

    def input(self, n: int) -> torch.Tensor:
        return torch.randn(n, self.channels, self.height, self.width).to(self.dtype)


def check(net: Net, batches: tuple[int, ...] = (2, 1, 3), *, fused: bool = True, features: str = KERNEL) -> None:
    one = pumice.load(net.file(), features=features)
    alone = pumice.load(replace(net, reader="sum").file(), features=KERNEL if fused else features)
    for n in batches:
        x = net.input(n)
        got, *_, mean = one(x)
        want = alone(x)[0]
        assert torch.equal(got, want), (got - want).abs().max()
        exact = got.double().mean(net.dims, keepdim=net.keepdim)
        roundings = got[0, 0].numel() ** 0.5 + 40
        bound = exact.abs() * 2.0**-11 + 2.0**-24 if net.dtype is torch.float16 else 0
        bound = bound + roundings * 2.0**-24 * got.double().abs().mean(net.dims, keepdim=net.keepdim)
        assert mean.shape == exact.shape and ((mean.double() - exact).abs() <= bound).all()
    ran = [row.kernel for row in one.profile(x)]
    assert any(kernel.startswith(FUSED) for kernel in ran) == fused, ran
    assert any(kernel.startswith("reduce[") for kernel in ran) != fused, ran


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
@pytest.mark.parametrize(
    ("channels", "height", "width"),
    [
        (5, 8, 8),
        (3, 7, 7),  # 3 of the 4 planes that make whole words
        (6, 9, 14),  # fp16: rows of words; fp32: two planes make words
        (7, 1, 1),
        (1, 33, 52),
        (2, 60, 100),  # more blocks than lanes
        (2, 29, 30),
        (4, 41, 21),
    ],
    ids=str,
)
def test_planes(channels: int, height: int, width: int, dtype: torch.dtype) -> None:
    check(Net(channels, height, width, dtype=dtype))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
@pytest.mark.parametrize(("kernel", "stride"), itertools.product([(3, 3), (5, 5), (1, 7)], [1, 2]), ids=str)
def test_windows(kernel: tuple[int, int], stride: int, dtype: torch.dtype) -> None:
    for width in (13, 16):
        check(Net(3, 11, width, kernel=kernel, stride=stride, act=4, bias=width == 13, dtype=dtype))


def test_fewer_lanes() -> None:
    for width in (31, 40):
        check(Net(3, 30, width), features=f"{KERNEL},max_invocations=128")


def test_without_the_dimensions_that_were_reduced() -> None:
    check(Net(5, 8, 8, keepdim=False))
    check(Net(5, 7, 7, keepdim=False, dtype=torch.float16))


def test_infinity_and_nan_stay_in_their_plane() -> None:
    net = Net(3, 7, 7, dtype=torch.float16)
    session = pumice.load(net.file(), features=KERNEL)
    for value in (float("inf"), float("nan")):
        x = net.input(2)
        x[1, 1, 3, 3] = value
        mean = session(x)[1].flatten(1)
        assert not mean[1, 1].isfinite() and mean.isfinite().sum() == 5


def test_images_beyond_a_binding() -> None:
    """3 images fit, in ranges of 2: means of 2 images of 8 channels are 64 bytes, where a binding may begin."""
    net = Net(8, 16, 16)
    check(net, (7, 1, 4), features=f"{KERNEL},alignment=64,max_storage={3 * 8 * 16 * 16 * 4}")


@pytest.mark.parametrize(
    "net",
    [
        Net(3, 8, 8, before=True),
        Net(3, 8, 8, dims=(2,)),
        Net(3, 8, 8, dims=(1, 2, 3)),
        Net(3, 8, 8, sizes=("h", "w")),
        Net(1, 70, 61),  # more outputs than shared memory has
    ],
    ids=["another reader", "of columns", "of images", "any size", "large odd images"],
)
def test_other_means(net: Net) -> None:
    if net.dims == (2, 3):
        check(net, fused=False)
        return
    one = pumice.load(net.file(), features=KERNEL)
    assert not any(row.kernel.startswith(FUSED) for row in one.profile(net.input(2)))


def test_two_means() -> None:
    net = Net(5, 8, 8, means=2)
    session = pumice.load(net.file(), features=KERNEL)
    image, one, two = session(net.input(2))
    assert (one - two).abs().max() <= 2.0**-20 and (one - image.mean((2, 3), keepdim=True)).abs().max() <= 2.0**-20
    ran = kernels(session, net.input(2))
    assert sorted(kernel.split("[")[0] for kernel in ran) == ["conv2d_depthwise_mean", "reduce"], ran


def test_a_texture() -> None:
    check(Net(3, 8, 8, batch=2), (2,), fused=False, features="storage=textures")


@pytest.mark.skipif(not is_llvmpipe(), reason="for a CPU driver")
def test_another_kernel() -> None:
    """A CPU driver keeps the two dispatches that are faster there."""
    session = pumice.load(Net(3, 8, 8).file(), features="")
    assert not any(row.kernel.startswith(FUSED) for row in session.profile(Net(3, 8, 8).input(1)))


def test_no_images() -> None:
    net = Net(3, 8, 8)
    session = pumice.load(replace(net, batch=0).file(), features=KERNEL)
    assert [x.shape for x in session(net.input(0))] == [(0, 3, 8, 8), (0, 3, 1, 1)]


@pytest.mark.parametrize("out", [[2, 3, 8], [2, 3, 8, 9], [2, 3, 0, 8], [2**31 - 1, 2**31 - 1, 2**31 - 1, 2**31 - 1]])
def test_a_result_declared_with_another_shape(out: list[int]) -> None:
    with pytest.raises(pumice.Error):
        pumice.load(replace(Net(3, 8, 8), batch=2, declared=tuple(out)).file(), features=KERNEL)


class Block(nn.Module):
    """A block of EfficientNet or MobileNetV3 after its first convolution."""

    def __init__(self, channels: int, kernel: int) -> None:
        super().__init__()
        self.depthwise = nn.Conv2d(channels, channels, kernel, padding=kernel // 2, groups=channels)
        self.scaled = SqueezeExcite(channels, 8, linear=False)
        self.project = nn.Conv2d(channels, 24, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.project(self.scaled(nn.functional.silu(self.depthwise(x))))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
@pytest.mark.parametrize("size", [7, 8])
def test_an_export_with_a_batch_of_any_size(size: int, dtype: torch.dtype) -> None:
    torch.manual_seed(6)
    block = Block(48, 5).eval().to(dtype)
    batch = torch.export.Dim("batch", min=1, max=8)
    program = pumice.export(block, (torch.randn(2, 48, size, size).to(dtype),), dynamic_shapes=({0: batch},))
    session = pumice.load(bytes(program), features="like_gpu")
    for n in (2, 1, 3):
        x = torch.randn(n, 48, size, size).to(dtype)
        with torch.no_grad():
            want = block(x)
        unit = 2.0**-11 if dtype is torch.float16 else 2.0**-20
        assert (session(x).float() - want.float()).abs().max() <= 4 * unit * want.abs().max()
    ran = [row.kernel for row in session.profile(x)]
    assert any(kernel.startswith(FUSED) for kernel in ran), ran
    assert not any(kernel.startswith("reduce[") for kernel in ran), ran
