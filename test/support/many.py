# SPDX-License-Identifier: Apache-2.0
"""Several functions in one module, so that one export and one load test all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch


class Many(torch.nn.Module):
    """Calls every function with all inputs; returns the list of their results."""

    def __init__(self, functions: Sequence[Callable[..., Any]]) -> None:
        super().__init__()
        self.functions = list(functions)

    def forward(self, *inputs: torch.Tensor) -> list[Any]:
        return [function(*inputs) for function in self.functions]


def normal(*shape: int, dtype: torch.dtype = torch.float32, seed: int = 1) -> torch.Tensor:
    """Normally distributed numbers, integers spread further; the same every time."""
    x = torch.randn(shape, generator=torch.Generator().manual_seed(seed))
    if dtype is torch.bool:
        return x > 0
    if dtype is torch.uint8:
        return (x.abs() * 40).to(dtype)
    return x.to(dtype) if dtype.is_floating_point else (x * 20).to(dtype)


FLOATS = [torch.float32, torch.float16]
ALL = [*FLOATS, torch.int64, torch.int32, torch.int8, torch.uint8, torch.bool]
