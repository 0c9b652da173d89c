# SPDX-License-Identifier: Apache-2.0
"""Statically quantized networks, one quantize node after another: its integers are compared with those that PyTorch's
operators compute in fp64 from the integers of the nodes before it, as the device computed them."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.fx import Interpreter, Node

QUANTIZE = "quantized_decomposed.quantize_per_tensor.default"
DEQUANTIZE = (
    "quantized_decomposed.dequantize_per_tensor.default",
    "quantized_decomposed.dequantize_per_channel.default",
)
# In steps of the integers: 16 roundings of fp32 of numbers up to 1024. Only a quotient so close to a tie may be rounded
# either way.
TIE = 16 * 2.0**-24 * 1024


class _Record(Interpreter):
    def __init__(self, module: nn.Module) -> None:
        super().__init__(module)
        self.integers: list[torch.Tensor] = []

    def run_node(self, n: Node) -> Any:
        result = super().run_node(n)
        if str(n.target) == QUANTIZE:
            self.integers.append(result)
        return result


class WithIntegers(nn.Module):
    """What convert_pt2e made, with the integers of all quantize nodes as results before its own."""

    def __init__(self, quantized: nn.Module) -> None:
        super().__init__()
        self.quantized = quantized

    def forward(self, x: torch.Tensor) -> list[torch.Tensor]:
        record = _Record(self.quantized)
        result = record.run(x)
        return [*record.integers, result]


class _Follow(Interpreter):
    def __init__(self, module: nn.Module, given: list[torch.Tensor]) -> None:
        super().__init__(module, garbage_collect_values=True)
        self.given = iter(given)
        self.open = self.all = 0

    def get_attr(self, target: Any, args: tuple, kwargs: dict) -> Any:
        value = super().get_attr(target, args, kwargs)
        return value.double() if isinstance(value, torch.Tensor) and value.is_floating_point() else value

    def call_function(self, target: Any, args: tuple, kwargs: dict) -> Any:
        if str(target) in DEQUANTIZE:
            q, scale, zero = args[:3]
            if "channel" in str(target):
                shape = [-1 if dim == args[3] else 1 for dim in range(q.dim())]
                scale, zero = scale.double().view(shape), zero.double().view(shape)
            return (q.double() - zero) * scale
        if str(target) == QUANTIZE:
            return self.checked(next(self.given), *args[:5])
        return super().call_function(target, args, kwargs)

    def checked(self, got: torch.Tensor, real: torch.Tensor, scale: float, zero: int, low: int, high: int) -> Any:
        quotient = real / scale
        least, most = (((quotient + e).round() + zero).clamp(low, high) for e in (-TIE, TIE))
        wrong = (got < least) | (got > most)
        assert not wrong.any(), f"{self.all} integers match; then {int(wrong.sum())} of {wrong.numel()} differ"
        self.open += int((least != most).sum())
        self.all += got.numel()
        return got


@torch.no_grad()
def follow(quantized: nn.Module, x: torch.Tensor, integers: list[torch.Tensor], result: torch.Tensor) -> None:
    """Checks `integers` and `result`, which WithIntegers computed on a device. Fewer than 1 % may be so close to a tie
    that both neighbours are right."""
    steps = _Follow(quantized, integers)
    want = steps.run(x.double())
    assert next(steps.given, None) is None
    torch.testing.assert_close(result.double(), want, rtol=2.0**-23, atol=0)  # (q - zero) * scale, rounded once
    assert steps.open < 0.01 * steps.all, f"{steps.open} of {steps.all} integers are left open"
