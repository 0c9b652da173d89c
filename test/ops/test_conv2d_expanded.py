# SPDX-License-Identifier: Apache-2.0
"""A convolution of single pixels and the depthwise convolution that reads it as one dispatch, of fp16 (ops/conv/
expanded_depthwise.h), where cooperative matrices have their elements in known places. Which ones are, by the plan for
such a GPU; and `./dev test-gpu` runs them on NVIDIA's, against fp64: the image between them is rounded to fp16."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from support.device import device
from support.dispatches import all_dispatches, profiles_by_buffers
from support.one_call import OneCall

import pumice

FUSED = "conv2d_expanded_depthwise_fragments["
TWO = "kernel=conv_depthwise"  # that is to run
on_gpu = pytest.mark.skipif("fragments" not in device().features, reason="no kernel of that kind runs here")
SLOPES = {0: 1.0, 1: 1.0, 4: 1.1, 5: 1.0, 6: 1.5}  # the steepest of each activation


@dataclass(frozen=True)
class Net:
    """A convolution that leaves its image channels-last, the two, and what reads them."""

    channels: tuple[int, int] = (24, 48)
    image: tuple[int, int] = (13, 12)
    batch: int = 1
    kernel: tuple[int, int] = (3, 3)
    stride: tuple[int, int] = (1, 1)
    pads: tuple[int, int, int, int] = (1, 1, 1, 1)
    acts: tuple[int, int] = (5, 5)
    biases: tuple[bool, bool] = (True, True)
    dtype: torch.dtype = torch.float16
    reader: str = ""  # "mean"; "conv": by ones on the diagonal, so that its result is x
    expansion_kernel: int = 1
    second_reader: bool = False  # of the image between the two
    dilation: int = 1
    first: bool = True  # there is a convolution before

    def weights(self) -> dict[str, torch.Tensor | None]:
        torch.manual_seed(3)
        (c, hidden), k = self.channels, self.kernel[0] * self.kernel[1]
        columns = c * self.expansion_kernel**2
        made = {
            "first": torch.randn(c, c) * c**-0.5,
            "expand": torch.randn(hidden, columns) * columns**-0.5 * 2,
            "depthwise": torch.randn(hidden, k) * k**-0.5 * 2,
        }
        if self.reader == "conv":
            made["last"] = torch.eye(hidden)
        made = {name: weight.to(self.dtype) for name, weight in made.items()}
        for name, has in zip(("expand_bias", "depthwise_bias"), self.biases, strict=True):
            made[name] = torch.randn(hidden) if has else None
        return made

    def out(self) -> list[int]:
        ends = zip(self.image, self.pads[:2], self.pads[2:], self.kernel, self.stride, strict=True)
        return [(size + a + b - self.dilation * (k - 1) - 1) // s + 1 for size, a, b, k, s in ends]

    def file(self) -> bytes:
        (c, hidden), n, program = self.channels, self.batch, OneCall()
        w = {name: program.constant(weight) for name, weight in self.weights().items()}
        inside, outside = [n, hidden, *self.image], [n, hidden, *self.out()]

        def call(x: object, weight: str, bias: object, window: list, act: int, dims: list, **more: bool) -> object:
            return program.call("conv2d", [x, w[weight], bias, *window, act], self.dtype, dims, **more)

        x = program.input(self.dtype, [n, c, *self.image])
        if self.first:
            x = call(x, "first", None, [*pixel(1), 1, False], 0, [n, c, *self.image])
        window = [*pixel(self.expansion_kernel), 1, False]
        middle = call(x, "expand", w["expand_bias"], window, self.acts[0], inside, inner=not self.second_reader)
        window = [list(self.kernel), list(self.stride), list(self.pads), [self.dilation] * 2, hidden, False]
        inner = self.reader == "conv"
        y = call(middle, "depthwise", w["depthwise_bias"], window, self.acts[1], outside, inner=inner)
        if self.reader == "mean":
            program.call("mean", [y, [2, 3], True], self.dtype, [n, hidden, 1, 1])
        if self.reader == "conv":
            call(y, "last", None, [*pixel(1), 1, False], 0, outside)
        return program.bytes()

    def x(self, seed: int) -> torch.Tensor:
        torch.manual_seed(seed)
        return torch.randn(self.batch, self.channels[0], *self.image).to(self.dtype)

    def expected(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """What the two give in fp64, and how far a kernel may be off; x: as the expansion reads it."""
        w = {name: None if weight is None else weight.double() for name, weight in self.weights().items()}
        u, tiny = (2.0**-11, 2.0**-25) if self.dtype is torch.float16 else (2.0**-24, 0.0)

        def conv(x: torch.Tensor, name: str, **window: object) -> tuple[torch.Tensor, torch.Tensor]:
            weight, bias = w[name], w.get(f"{name}_bias")
            taps = (1, 1) if name == "expand" else self.kernel
            shaped = weight.reshape(len(weight), -1, *taps)
            y = torch.nn.functional.conv2d(x.double(), shaped, bias, **window)
            size = None if bias is None else bias.abs()
            return y, torch.nn.functional.conv2d(x.double().abs(), shaped.abs(), size, **window)

        middle, size = conv(x, "expand")
        # conv_roundings in ops/conv/kernels.cpp.
        terms = 2.0**-23 * (self.channels[0] + 26) + (2.0**-19 if self.dtype is torch.float32 else 0)
        error = size * terms * SLOPES[self.acts[0]]
        middle = activated(middle, self.acts[0])
        error = error + (u + 2.0**-20) * middle.abs() + tiny
        (top, left, bottom, right), hidden = self.pads, self.channels[1]
        padded, error = (torch.nn.functional.pad(each, (left, right, top, bottom)) for each in (middle, error))
        y, size = conv(padded, "depthwise", stride=self.stride, groups=hidden)
        shaped = w["depthwise"].abs().reshape(hidden, 1, *self.kernel)
        off = torch.nn.functional.conv2d(error, shaped, stride=self.stride, groups=hidden)
        off = (off + size * 2.0**-24 * 30) * SLOPES[self.acts[1]]
        y = activated(y, self.acts[1])
        return y, off + (u + 2.0**-20) * y.abs() + tiny + 2.0**-21 * y.abs()


def pixel(kernel: int) -> list:
    return [[kernel] * 2, [1, 1], [kernel // 2] * 4, [1, 1]]


def activated(x: torch.Tensor, act: int) -> torch.Tensor:
    f = torch.nn.functional
    return {0: lambda x: x, 1: f.relu, 4: f.silu, 5: f.relu6, 6: f.hardswish}[act](x)


def check(net: Net, x: torch.Tensor, got: list[torch.Tensor]) -> None:
    """`got`: the outputs of the file."""
    if net.first:
        x, *got = got
    want, bound = net.expected(x)
    off = (got[0].double() - want).abs() / bound
    assert (off <= 1).all(), off.max()
    if net.reader == "mean":
        exact = got[0].double().mean((2, 3), keepdim=True)
        roundings = got[0][0, 0].numel() ** 0.5 + 40
        bound = exact.abs() * 2.0**-11 + 2.0**-24 if net.dtype is torch.float16 else 0
        bound = bound + roundings * 2.0**-24 * got[0].double().abs().mean((2, 3), keepdim=True)
        assert ((got[1].double() - exact).abs() <= bound).all()


CASES = {
    "a block of MobileNetV2": Net((64, 384), (14, 14)),
    "its last ones": Net((160, 960), (7, 7)),
    "steps": Net((24, 144), (56, 56), stride=(2, 2)),
    "a large image": Net((16, 96), (112, 112), stride=(2, 2), reader="conv"),
    "many strips": Net((24, 144), (56, 56), acts=(4, 4)),
    "5x5 and steps": Net((24, 144), (56, 56), kernel=(5, 5), stride=(2, 2), pads=(2,) * 4, reader="conv"),
    "5x5, steps and means": Net((112, 672), (14, 14), kernel=(5, 5), stride=(2, 2), pads=(2,) * 4, reader="mean"),
    "5x5 of few pixels": Net((192, 1152), (7, 7), kernel=(5, 5), pads=(2,) * 4, acts=(4, 4), reader="mean"),
    "odd sizes": Net(image=(13, 11)),
    "odd sizes and means": Net((40, 32), (9, 7), acts=(4, 6), reader="mean"),
    "odd sizes, steps": Net((72, 32), (9, 13), stride=(2, 2), acts=(6, 1), reader="conv"),
    "steps from the first pixel": Net(image=(12, 12), stride=(2, 2), pads=(0, 0, 1, 1), reader="conv"),
    "steps along one axis": Net(image=(12, 10), stride=(1, 2), kernel=(5, 3), pads=(2, 1, 2, 1)),
    "no padding": Net(image=(12, 10), pads=(0,) * 4),
    "much padding": Net(image=(5, 6), pads=(4, 3, 2, 5), acts=(0, 0), reader="conv"),
    "a window of one row": Net(image=(8, 9), kernel=(1, 7), pads=(0, 3, 0, 3)),
    "one row": Net(image=(1, 9), reader="mean"),
    "one column": Net(image=(9, 1), reader="conv"),
    "channels that are no tile": Net((8, 16), (10, 12)),
    "three images": Net((24, 48), (14, 14), batch=3, reader="mean"),
    "two images, channels-last": Net((24, 48), (9, 7), batch=2, reader="conv"),
    "no biases": Net(biases=(False, False), acts=(0, 0)),
    "a bias before": Net(biases=(True, False), acts=(1, 0)),
    "a bias after": Net(biases=(False, True), acts=(0, 4), reader="mean"),
}

OTHERS = {
    "a second reader": Net(second_reader=True),
    "a window of two axes before": Net(expansion_kernel=3),
    "channels that are no panel": Net((24, 56)),
    "more taps": Net(kernel=(7, 7), pads=(3,) * 4),
    "holes": Net(dilation=2),
    "steps of three": Net(stride=(3, 3)),
    "an image that is NCHW": Net(first=False),
    "means of a large image": Net((40, 240), (28, 28), stride=(2, 2), reader="mean"),
    "many images": Net((24, 144), (14, 14), batch=48),
    "fp32": Net(dtype=torch.float32),
}

ALL = CASES | OTHERS


@pytest.fixture(scope="module")
def gpus(tmp_path_factory) -> tuple[Path, Path]:
    """Profiles of a GPU, and of one whose shaders bind fewer buffers than the kernel needs."""
    return profiles_by_buffers(tmp_path_factory.mktemp("profiles"), few=6)


@pytest.mark.parametrize("name", ALL)
def test_which_are_one_dispatch(name, gpus, tmp_path) -> None:
    file = tmp_path / "net.pumice"
    file.write_bytes(ALL[name].file())
    one, two = (all_dispatches(file, gpu) for gpu in gpus)
    assert two - one == (1 if name in CASES else 0)


@on_gpu
@pytest.mark.parametrize("name", CASES)
def test_against_fp64(name) -> None:
    net = CASES[name]
    session = pumice.load(net.file())
    for seed in (1, 2):
        x = net.x(seed)
        check(net, x, list(session(x)))
    ran = [row.kernel for row in session.profile(x)]
    assert sum(kernel.startswith(FUSED) for kernel in ran) == 1, ran
    two = pumice.load(net.file(), features=TWO)
    assert not [row for row in two.profile(x) if row.kernel.startswith(FUSED)]
    check(net, x, list(two(x)))


class Block(torch.nn.Module):
    """A block of MobileNetV2 or, with means, of EfficientNet, and the convolution before it."""

    def __init__(self, means: bool, adds: bool) -> None:
        super().__init__()
        self.means, self.adds = means, adds
        self.before, self.expand = torch.nn.Conv2d(24, 24, 1), torch.nn.Conv2d(24, 96, 1)
        self.depthwise = torch.nn.Conv2d(96, 96, 3, padding=1, groups=96)
        self.scale, self.project = torch.nn.Conv2d(96, 96, 1), torch.nn.Conv2d(96, 24, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.before(x) + x if self.adds else self.before(x)
        y = torch.nn.functional.silu(self.depthwise(torch.nn.functional.silu(self.expand(x))))
        return self.project(y * torch.sigmoid(self.scale(y.mean((2, 3), keepdim=True))) if self.means else y)


@on_gpu
@pytest.mark.parametrize("adds", [False, True])
@pytest.mark.parametrize("means", [False, True])
def test_a_lie_is_found(means, adds, tmp_path) -> None:
    torch.manual_seed(4)
    block, x = Block(means, adds).half().eval(), torch.randn(1, 24, 14, 14).half()
    with torch.no_grad():
        pumice.export(block, (x,)).save(tmp_path / "block.pumice")

    def found(features: str) -> list[str]:
        session = pumice.load(tmp_path / "block.pumice", cache_dir="off", features=features)
        return [each.result for each in session.device.self_test if each.kernel.startswith(FUSED)]

    assert found("lie=fragments") == ["wrong"]
    assert found("") == ["right"]
