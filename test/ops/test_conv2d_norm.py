# SPDX-License-Identifier: Apache-2.0
"""A depthwise convolution whose channels are last and the layer norm of each pixel: one dispatch on a GPU. Compared
with fp64 of the same stored numbers."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
import torch
from support.device import is_llvmpipe
from support.one_call import OneCall
from torch.nn import functional as F

import pumice

GPU = "like_gpu"
FUSED = "conv2d_depthwise_channels_last_norm["
EPS = 1e-5


@dataclass(frozen=True)
class Net:
    channels: int
    height: int = 5
    width: int = 6
    kernel: tuple[int, int] = (7, 7)
    stride: tuple[int, int] = (1, 1)
    act: int = 0
    bias: bool = True
    factors: bool = True
    shift: float = 0.0  # of all sums: a mean far from 0
    dtype: torch.dtype = torch.float32
    count: int = 1  # dimensions of the norm
    norm: str = "layer_norm"
    batch: int | str = "n"
    another_reader: bool = False
    declared: tuple[int, ...] = ()  # what the file says of the convolution's result; else what is right

    def tensors(self) -> dict[str, torch.Tensor | None]:
        torch.manual_seed(9)
        taps = self.kernel[0] * self.kernel[1]
        of_channels = (self.height, self.width, self.channels)[-self.count :]
        return {
            "weight": (torch.randn(taps, self.channels) * taps**-0.5).to(self.dtype),
            "bias": torch.randn(self.channels) + self.shift if self.bias else None,
            "gamma": torch.randn(of_channels).to(self.dtype) if self.factors else None,
            "beta": torch.randn(of_channels).to(self.dtype) if self.factors else None,
        }

    def out(self) -> list[int]:
        sizes = zip((self.height, self.width), self.kernel, self.stride, strict=True)
        return [(size + 2 * (k // 2) - k) // stride + 1 for size, k, stride in sizes]

    def file(self) -> bytes:
        program, tensors = OneCall(), self.tensors()
        x = program.input(self.dtype, [self.batch, self.height, self.width, self.channels])
        weight, bias, gamma, beta = (program.constant(tensor) for tensor in tensors.values())
        pads = [self.kernel[0] // 2, self.kernel[1] // 2] * 2
        dims = [self.batch, *self.out(), self.channels]
        geometry = [list(self.kernel), list(self.stride), pads, [1, 1], self.act]
        inner = list(self.declared) or dims
        y = program.call("conv2d_depthwise_channels_last", [x, weight, bias, *geometry], self.dtype, inner, inner=True)
        if self.another_reader:
            program.call("relu", [y], self.dtype, inner)
        factors = [gamma, beta] if self.norm == "layer_norm" else [gamma]
        program.call(self.norm, [y, self.count, *factors, EPS], self.dtype, dims)
        return program.bytes()

    def input(self, n: int) -> torch.Tensor:
        return torch.randn(n, self.height, self.width, self.channels).to(self.dtype)

    def want(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """fp64, and how much one unit of fp32 in each sum and of the dtype in the result may be."""
        t = {name: None if tensor is None else tensor.double() for name, tensor in self.tensors().items()}
        pads = self.kernel[0] // 2, self.kernel[1] // 2

        def sums(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
            w = weight.T.reshape(self.channels, 1, *self.kernel)
            y = F.conv2d(x.permute(0, 3, 1, 2), w, bias, self.stride, pads, groups=self.channels)
            return y.permute(0, 2, 3, 1)

        y = sums(x.double(), t["weight"], t["bias"])
        size = sums(x.double().abs(), t["weight"].abs(), None if t["bias"] is None else t["bias"].abs())
        y = torch.relu(y) if self.act == 1 else y
        want = F.layer_norm(y, (self.channels,), t["gamma"], t["beta"], EPS)
        roundings = (self.kernel[0] * self.kernel[1] + self.channels / 16 + 40) * 2.0**-24
        scale = (y.var(-1, unbiased=False, keepdim=True) + EPS).rsqrt()
        gamma = 1.0 if t["gamma"] is None else t["gamma"].abs()
        # An error of y moves the mean and, by y - mean, the variance.
        normed = F.layer_norm(y, (self.channels,), None, None, EPS).abs()
        error = roundings * (size + size.mean(-1, keepdim=True) * (1 + normed)) * scale * gamma * 2
        unit = 2.0**-11 if self.dtype is torch.float16 else 2.0**-22
        return want, error + unit * want.abs() + 2.0**-22


def check(net: Net, batches: tuple[int, ...] = (2, 1, 3), *, fused: bool = True, features: str = GPU) -> None:
    session = pumice.load(net.file(), features=features)
    for n in batches:
        x = net.input(n)
        got = session(x)
        got = got[-1] if isinstance(got, list | tuple) else got
        if net.count == 1 and net.norm == "layer_norm":
            want, bound = net.want(x)
            assert ((got.double() - want).abs() <= bound).all(), ((got.double() - want).abs() / bound).max()
    ran = [row.kernel for row in session.profile(x)]
    assert any(kernel.startswith(FUSED) for kernel in ran) == fused, ran
    assert any(kernel.startswith("norm[") for kernel in ran) != fused, ran


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
@pytest.mark.parametrize("channels", [4, 12, 60, 64, 68, 96, 160, 384, 768, 1024])
def test_channels(channels: int, dtype: torch.dtype) -> None:
    check(Net(channels, dtype=dtype))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
@pytest.mark.parametrize(
    "net",
    [
        Net(8, 9, 7, kernel=(3, 5), stride=(2, 3), act=1),
        Net(20, 3, 13, kernel=(1, 9), bias=False),
        Net(16, 1, 1, kernel=(7, 7)),
        Net(96, 8, 9, shift=30.0),
        Net(256, 40, 53, kernel=(3, 3)),  # columns share what they read, the last two not whole
    ],
    ids=["strides", "rows", "pixel", "shifted", "large"],
)
def test_windows(net: Net, dtype: torch.dtype) -> None:
    check(replace(net, dtype=dtype), batches=(1, 2))


def test_few_lanes() -> None:
    check(Net(96, 9, 9), features=f"{GPU},max_invocations=128")
    check(Net(512), features=f"{GPU},max_invocations=128")
    check(Net(516), features=f"{GPU},max_invocations=128", fused=False)


def test_images_beyond_a_binding() -> None:
    net = Net(64, 8, 8)
    check(net, (5, 2), features=f"{GPU},max_storage={2 * 8 * 8 * 64 * 4}")


@pytest.mark.parametrize(
    "net",
    [Net(16, another_reader=True), Net(16, factors=False), Net(16, norm="rms_norm"), Net(16, 5, 6, count=3, batch=2)],
    ids=["another reader", "without factors", "rms_norm", "of images"],
)
def test_other_norms(net: Net) -> None:
    check(net, (2,), fused=False)


@pytest.mark.skipif(not is_llvmpipe(), reason="for a CPU driver")
def test_a_cpu_driver() -> None:
    check(Net(16), features="", fused=False)


def test_factors_of_another_size() -> None:
    net = Net(16)
    tensors = net.tensors() | {"gamma": torch.randn(12), "beta": torch.randn(12)}
    object.__setattr__(net, "tensors", lambda: tensors)
    with pytest.raises(pumice.InvalidFileError, match="12 elements, not 16"):
        pumice.load(net.file(), features=GPU)


def test_no_images() -> None:
    session = pumice.load(Net(16, batch=0).file(), features=GPU)
    assert session(Net(16).input(0)).shape == (0, 5, 6, 16)


@pytest.mark.parametrize("out", [(2, 5, 96), (2, 5, 6, 12), (2, 5, 6, 0), (2, 5, 5, 16), (2**31 - 1,) * 4])
def test_a_result_declared_with_another_shape(out: tuple[int, ...]) -> None:
    with pytest.raises(pumice.Error):
        pumice.load(Net(16, batch=2, declared=out).file(), features=GPU)
