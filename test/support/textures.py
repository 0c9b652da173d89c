# SPDX-License-Identifier: Apache-2.0
"""Modules and helpers for tests of values in textures."""

from __future__ import annotations

import torch
import torchao.quantization.quant_primitives  # noqa: F401 (registers torchao's operators)

from support.quantized import quantized

TEXTURE = {"storage": "texture"}
WEIGHTS = {
    "float": None,
    "q4": (4, 32, False),
    "q4 affine": (4, 32, True),
    "q8": (8, None, False),
    "q8 g32": (8, 32, True),
}


def layer(kind: str, n: int, k: int, dtype: torch.dtype = torch.float32, bias: bool = True) -> torch.nn.Linear:
    torch.manual_seed(n + k)
    module = torch.nn.Linear(k, n, bias=bias).to(dtype).eval()
    if WEIGHTS[kind] is None:
        return module
    bits, group, affine = WEIGHTS[kind]
    return quantized(module, bits, None if group and k % group else group, affine)


class Mixed(torch.nn.Module):
    """Textures, then an operator that has none, then textures again, and a value that both kinds read."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = torch.nn.Linear(33, 70), torch.nn.Linear(70, 21)

    def forward(self, x: torch.Tensor):
        hidden = self.first(x)
        return self.second(torch.softmax(hidden, -1)), torch.tanh(hidden) + hidden, hidden.transpose(0, 1)


class Apply(torch.nn.Module):
    def __init__(self, function) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.function(x)


class Round(torch.nn.Module):
    """Chosen parameters, to integers and back."""

    def __init__(self, block: list[int], dtype: torch.dtype, low: int, high: int) -> None:
        super().__init__()
        self.block, self.dtype, self.low, self.high = block, dtype, low, high

    def forward(self, x: torch.Tensor):
        arguments = ("ASYMMETRIC", self.block, self.dtype, self.low, self.high, 1e-5, torch.float32, torch.int32)
        scale, zero = torch.ops.torchao.choose_qparams_affine(x, *arguments)
        q = torch.ops.torchao.quantize_affine(x, self.block, scale, zero, self.dtype, self.low, self.high)
        return (
            q,
            torch.ops.torchao.dequantize_affine(
                q, self.block, scale, zero, self.dtype, self.low, self.high, output_dtype=x.dtype
            ),
            scale,
        )
