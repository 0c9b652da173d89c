# SPDX-License-Identifier: Apache-2.0
"""Layers whose weight is integers and scales, with the graph that torchao's own tensors export to.

The integers are read when the file is written; until then a layer has empty tensors of their shape.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torchao.quantization.quant_primitives import dequantize_affine
from torchao.quantization.quantize_.workflows.intx.intx_unpacked_to_int8_tensor import (
    _apply_int8_act_asym_per_token_quant_dequant as quantize_rows,
)

from pumice.errors import InvalidInputError
from pumice.quantizer import INT4_SCHEMES, quantize

Read = Callable[[], Tensor]


@dataclass(frozen=True)
class Scheme:
    """`name`: int4, int8 or 8da4w, as pumice.quantize has them; `zeros`: the weights come with zero points."""

    name: str
    group_size: int
    zeros: bool = False

    def group(self, columns: int, layer: str) -> int:
        """Weights of a row that share a scale; raises InvalidInputError when that does not divide the row."""
        if self.name not in INT4_SCHEMES:
            return columns
        if columns % self.group_size:
            text = f"layer '{layer}' has {columns} inputs, which groups of {self.group_size} do not divide"
            raise InvalidInputError(text, code="InvalidArgument", path=layer)
        return self.group_size


class _Integers:
    """Mixed into the class of a layer: its weight is computed from integers [N, K] and scales [N, groups]."""

    @property
    def weight(self) -> Tensor:
        group, (low, high), dtype = self._how
        return dequantize_affine(
            self.integers, [1, group], self.scale, self.zero, torch.int8, low, high, output_dtype=dtype
        )


class _IntegersAndRows(_Integers):
    """The same, and the layer's input is quantized row by row."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(quantize_rows(x))


def quantized_weight(weight: Tensor, scheme: Scheme) -> tuple[Tensor, Tensor]:
    """Integers [N, K] int8 and scales [N, groups] of a weight [N, K], as pumice.quantize makes them."""
    layer = nn.Linear(1, 1, bias=False)
    layer.in_features, layer.out_features = weight.shape[1], weight.shape[0]
    layer.weight = nn.Parameter(weight, requires_grad=False)
    made = quantize(layer, scheme.name, scheme.group_size).weight
    if bool(made.zero_point.any()):
        raise AssertionError(f"{scheme.name} is not symmetric")
    return made.qdata, made.scale


def quantize_layer(layer: nn.Module, name: str, scheme: Scheme, read: Read) -> dict[str, Read]:
    """Makes a linear layer or an embedding a quantized one; returns what reads its buffers, by their names.

    read: gives the float weight [N, K].
    """
    shape, dtype = layer.weight.shape, layer.weight.dtype
    group = scheme.group(shape[1], name)
    del layer.weight
    layer.integers = nn.Buffer(torch.empty(shape, dtype=torch.int8))
    layer.scale = nn.Buffer(torch.empty(shape[0], shape[1] // group, dtype=dtype))
    layer.zero = None
    layer._how = group, (-8, 7) if scheme.name in INT4_SCHEMES else (-128, 127), dtype
    rows = scheme.name.startswith("8da") and isinstance(layer, nn.Linear)
    mixin = _IntegersAndRows if rows else _Integers
    layer.__class__ = type(f"Quantized{type(layer).__name__}", (mixin, type(layer)), {})
    both = functools.lru_cache(maxsize=1)(lambda: quantized_weight(read(), scheme))
    return {"integers": lambda: both()[0], "scale": lambda: _last(both)}


def _last(both: Callable[[], tuple[Tensor, Tensor]]) -> Tensor:
    """The scales, after which the integers are not kept any longer: a file has them in this order."""
    scale = both()[1]
    both.cache_clear()
    return scale
