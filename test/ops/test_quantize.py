# SPDX-License-Identifier: Apache-2.0
"""Quantization bit for bit as eager PyTorch has it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torchao  # noqa: F401 (registers torch.ops.torchao)
from torch.ao.quantization.fx import _decomposed  # noqa: F401 (registers torch.ops.quantized_decomposed)

ao, qd = torch.ops.torchao, torch.ops.quantized_decomposed
DTYPES = [torch.int8, torch.uint8, torch.int32]
FLOATS = [torch.float32, torch.float16]
INF, NAN = float("inf"), float("nan")


class Apply(torch.nn.Module):
    """A function of tensors; `constants` are buffers handed to it behind the inputs."""

    def __init__(self, function: Callable[..., Any], *constants: torch.Tensor) -> None:
        super().__init__()
        self.function, self.count = function, len(constants)
        for index, constant in enumerate(constants):
            self.register_buffer(f"c{index}", constant)

    def forward(self, *inputs: torch.Tensor) -> Any:
        return self.function(*inputs, *(getattr(self, f"c{i}") for i in range(self.count)))


def limits(dtype: torch.dtype) -> tuple[int, int]:
    return torch.iinfo(dtype).min, torch.iinfo(dtype).max


def all_halves() -> torch.Tensor:
    return torch.arange(-(2**15), 2**15).to(torch.int16).view(torch.float16)


def floats(scale: float) -> torch.Tensor:
    """Every exponent, ties and their neighbours for a scale, both saturations and what is special."""
    bits = torch.arange(0, 2**32, 52_361, dtype=torch.int64)
    patterns = bits.to(torch.uint32).view(torch.float32)
    ties = (torch.arange(-1000, 1000) + 0.5) * scale
    ties = torch.cat([ties, torch.nextafter(ties, ties * 2), torch.nextafter(ties, ties * 0)])
    special = torch.tensor([0.0, -0.0, INF, -INF, NAN, 1e30, -1e30, 1e-40, -1e-40, 1.1754942e-38, 2.0**31, -(2.0**31)])
    return torch.cat([patterns, ties, special])


SCALES = [0.1, 1.0, 0.0235, 3.0, 2.0**-20, 7e-5, 5.96e-8, 1000.0, 60000.0]
EXTREME = [0.0, 1e-40, 2.0**-126, 2.0**-125, 2.0**127, 3e38, INF, NAN]
IN_TURN = {torch.int8: (0, -7, 127, -128), torch.uint8: (0, 128, 255), torch.int32: (0, 100, -5)}


def affine(dtype: torch.dtype, low: int, high: int, zeros: tuple[int, ...]) -> Callable[..., Any]:
    """Every row of x with every one of `zeros`, a scale a row."""

    def function(x: torch.Tensor, scale: torch.Tensor) -> list[torch.Tensor]:
        block = [1, x.shape[1]]
        each = [torch.full(scale.shape, zero, dtype=torch.int32) for zero in zeros]
        return [ao.quantize_affine(x, block, scale, zero, dtype, low, high) for zero in each]

    return function


@pytest.mark.parametrize("half_scale", [False, True], ids=["f32 scale", "f16 scale"])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_half(road, dtype, half_scale) -> None:
    """All 65,536 of them: ties, both saturations, NaN, infinities, denormals."""
    low, high = limits(dtype)
    if half_scale and dtype is torch.int32:
        low, high = -30000, 65504  # what PyTorch can compare fp16 with
    scales = torch.tensor(SCALES).to(torch.float16 if half_scale else torch.float32)
    module = Apply(affine(dtype, low, high, IN_TURN[dtype]), scales)
    road.check(
        module, all_halves().repeat(len(scales), 1), reference="eager", expect_ops={"quantize": len(IN_TURN[dtype])}
    )


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_floats(road, dtype) -> None:
    scales = [*SCALES, *EXTREME]
    x = torch.stack([floats(scale) for scale in scales])
    module = Apply(affine(dtype, *limits(dtype), IN_TURN[dtype]), torch.tensor(scales))
    road.check(module, x, reference="eager", expect_ops={"quantize": len(IN_TURN[dtype])}, all_features=True)
