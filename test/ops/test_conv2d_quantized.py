# SPDX-License-Identifier: Apache-2.0
"""An image that a convolution of few channels quantizes while it lays it out for matrices. Compared bit for bit with
the same convolution of the integers that eager PyTorch makes of the image."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import torch
from support.device import is_llvmpipe
from support.one_call import OneCall

import pumice

STEPS_F16 = 1  # glsl/include/core/modes.glslh
LIMITS = {torch.int8: (-128, 127), torch.uint8: (0, 255)}
WINDOWS = {  # kernel, stride, padding, dilation, image, output
    "3x3": (3, 2, 1, 1, (18, 22), (9, 11)),
    "7x7": (7, 2, 3, 1, (19, 31), (10, 16)),
    "5x5 with holes": (5, 3, 4, 2, (17, 13), (6, 5)),
}


@dataclass
class Net:
    """q8ta_conv2d(quantize(x)), or of an input of integers."""

    dtype: torch.dtype = torch.int8  # of the integers
    x_dtype: torch.dtype = torch.float32
    window: str = "3x3"
    channels: int = 3
    scale: float = 0.037  # the convolution always has 0.037
    zero: int | None = None  # 11 above the least
    low: int | None = None  # of the quantized image; the least of the dtype
    steps: int = 0
    scale_is_tensor: bool = False
    round_last: bool = False
    second_reader: bool = False

    def __post_init__(self) -> None:
        least = LIMITS[self.dtype][0]
        self.zero = least + 11 if self.zero is None else self.zero
        self.low = least if self.low is None else self.low

    def dims(self) -> list:
        return ["n", self.channels, *WINDOWS[self.window][4]]

    def quantize(self, program: OneCall):
        scale = program.constant(torch.tensor([self.scale])) if self.scale_is_tensor else self.scale
        args = [program.input(self.x_dtype, self.dims()), scale, self.zero, [-1] * 4, self.low]
        args += [LIMITS[self.dtype][1], self.steps, self.round_last]
        return program.call("quantize", args, self.dtype, self.dims(), inner=True)

    def file(self, quantizes: bool) -> bytes:
        torch.manual_seed(3)
        program, least = OneCall(), LIMITS[self.dtype][0]
        x = self.quantize(program) if quantizes else program.input(self.dtype, self.dims())
        kernel, stride, pad, dilation, _, out = WINDOWS[self.window]
        weight = torch.randint(-127, 128, (24, self.channels * kernel**2)).to(torch.int8)
        scale = torch.rand(24, 1) * 0.002 + 0.001
        args = [x, program.constant(weight), program.constant(scale), None, program.constant(torch.randn(24))]
        args += [[kernel] * 2, [stride] * 2, [pad] * 4, [dilation] * 2, 1, False, 0]
        args += [0.037, self.zero, 0.3, least + 128, least, least + 255]
        program.call("q8ta_conv2d", args, self.dtype, ["n", 24, *out])
        if self.second_reader:
            program.call("view", [x, [-1, *self.dims()[1:]]], self.dtype, self.dims())
        return program.bytes()

    def integers(self, x: torch.Tensor) -> torch.Tensor:
        inverse = torch.tensor(1 / self.scale) if not self.scale_is_tensor else 1 / torch.tensor(self.scale)
        v = x.float() * inverse
        if self.steps == STEPS_F16:
            v = v.half().float()
        q = torch.round(v + self.zero) if self.round_last else torch.round(v) + self.zero
        return torch.clamp(q, self.low, LIMITS[self.dtype][1]).to(torch.int32).to(self.dtype)


def image(net: Net, n: int, special: bool) -> torch.Tensor:
    torch.manual_seed(n)
    x = torch.randn(n, *net.dims()[1:]) * 54 * net.scale
    x[:, :, ::3] = (torch.randint(-300, 300, x[:, :, ::3].shape) + 0.5) * net.scale  # ties, and beyond the range
    if special:
        numbers = torch.tensor([0.0, -0.0, 1e-40, -1e-40, 65504.0, -65504.0, float("inf"), -float("inf")])
        x[0, 0, 1, : len(numbers)] = numbers
    return x.to(net.x_dtype)


def run(net: Net) -> list[str]:
    """The kernels that ran, of two batches whose results are those of the integers."""
    features = f"kernel={'conv8_16x32' if is_llvmpipe() else 'conv8_64x128'}"
    quantizes = pumice.load(net.file(True), features=features)
    reads = pumice.load(net.file(False), features=features)
    for n in (2, 1):
        x = image(net, n, special=True)
        got, want = quantizes(x), reads(net.integers(x))
        for each, other in zip(got if net.second_reader else [got], want if net.second_reader else [want], strict=True):
            assert each.dtype == net.dtype and torch.equal(each, other)
            assert other.unique().numel() > 15
    return [row.kernel for row in quantizes.profile(x)]


@pytest.mark.parametrize("x_dtype", [torch.float32, torch.float16], ids=str)
@pytest.mark.parametrize("dtype", LIMITS, ids=str)
@pytest.mark.parametrize("window", WINDOWS)
def test_in_the_convolution(window, dtype, x_dtype) -> None:
    ran = run(Net(dtype, x_dtype, window))
    x = "f32" if x_dtype is torch.float32 else "f16"
    assert ran[0] == f"conv2d_row_taps[{x},i8]" and not any(kernel.startswith("quantize") for kernel in ran), ran


def test_nan_is_zero() -> None:
    """As of the operator: PyTorch's conversion of NaN differs between processors."""
    net = Net()
    x = image(net, 1, special=False)
    x[0, 1, 4, 5:9] = float("nan")
    integers = net.integers(torch.nan_to_num(x))
    integers[x.isnan()] = 0
    features = f"kernel={'conv8_16x32' if is_llvmpipe() else 'conv8_64x128'}"
    got, want = (pumice.load(net.file(quantizes), features=features) for quantizes in (True, False))
    assert torch.equal(got(x), want(integers))


def test_steps_in_fp16() -> None:
    assert "conv2d_row_taps[f16,i8]" in run(Net(x_dtype=torch.float16, steps=STEPS_F16, scale=0.0371))


@pytest.mark.parametrize("zero", [-90, 0, 127])
def test_zero_points_and_ranges(zero) -> None:
    """`low` above the least, as after a relu, and padding that is the zero point."""
    assert "conv2d_row_taps[f32,i8]" in run(Net(zero=zero, low=-100, window="7x7"))


OTHERS = {
    "a second reader": Net(second_reader=True),
    "a scale that is a tensor": Net(scale_is_tensor=True),
    "more channels": Net(channels=16),
    "rounded after the sum": Net(round_last=True),
    "a scale whose reciprocal is extreme": Net(scale=3e-38),
}


@pytest.mark.parametrize("name", OTHERS)
def test_quantized_by_itself(name) -> None:
    ran = run(OTHERS[name])
    assert ran[0].startswith("quantize[f32,i8") and "conv2d_row_taps[f32,i8]" not in ran, ran
