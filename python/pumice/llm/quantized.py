# SPDX-License-Identifier: Apache-2.0
"""Layers whose weight is integers and scales, with the graph that torchao's own tensors export to.

The integers are read when the file is written; until then a layer has empty tensors of their shape.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from pumice.llm.weight_forms import Integers, Read, Scheme
from pumice.quantizer import INT4_SCHEMES, quantize, quiet_torchao

with quiet_torchao():
    from torchao.quantization.quant_primitives import dequantize_affine
    from torchao.quantization.quantize_.workflows.intx.intx_unpacked_to_int8_tensor import (
        _apply_int8_act_asym_per_token_quant_dequant as quantize_rows,
    )

_AT_ONCE = 1 << 22  # weights


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

    def forward(self, x: Tensor, *more: Tensor) -> Tensor:
        return super().forward(quantize_rows(x), *more)


def quantized_weight(weight: Tensor, scheme: Scheme) -> tuple[Tensor, Tensor]:
    """Integers [N, K] int8 and scales [N, groups] of a weight [N, K], as pumice.quantize makes them: a few rows at a
    time, since torchao takes several times the memory of what it quantizes."""
    parts = [_quantized_rows(rows, scheme) for rows in weight.split(max(1, _AT_ONCE // weight.shape[1]))]
    integers, scales = zip(*parts, strict=True)
    return torch.cat(integers), torch.cat(scales)


def _quantized_rows(weight: Tensor, scheme: Scheme) -> tuple[Tensor, Tensor]:
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
    group = scheme.group(layer.weight.shape[1], name)
    bits = 4 if scheme.name in INT4_SCHEMES else 8
    rows = scheme.name.startswith("8da")
    return integer_layer(layer, Integers(bits, group, False, lambda: quantized_weight(read(), scheme)), rows)


def integer_layer(layer: nn.Module, weight: Integers, rows: bool = False) -> dict[str, Read]:
    """The same for a weight that is quantized already. `rows`: a linear layer's input is quantized row by row."""
    (count, columns), dtype = layer.weight.shape, layer.weight.dtype
    groups = columns // weight.group
    del layer.weight
    layer.integers = nn.Buffer(torch.empty(count, columns, dtype=torch.int8))
    layer.scale = nn.Buffer(torch.empty(count, groups, dtype=dtype))
    layer.zero = nn.Buffer(torch.empty(count, groups, dtype=torch.int8)) if weight.zeros else None
    layer._how = weight.group, (-8, 7) if weight.bits == 4 else (-128, 127), dtype
    mixin = _IntegersAndRows if rows and isinstance(layer, nn.Linear) else _Integers
    layer.__class__ = type(f"Quantized{type(layer).__name__}", (mixin, type(layer)), {})
    parts = _Parts(weight.read)
    reads: dict[str, Read] = {"integers": lambda: parts.part(0), "scale": lambda: parts.part(1).to(dtype)}
    return reads | ({"zero": lambda: parts.part(2)} if weight.zeros else {})


class _Parts:
    """What `read` gives is kept until its last part was taken: a file has them one after the other."""

    def __init__(self, read: Callable[[], tuple[Tensor, ...]]) -> None:
        self._read, self._kept = read, ()

    def part(self, index: int) -> Tensor:
        parts = self._kept or self._read()
        self._kept = () if index == len(parts) - 1 else parts
        return parts[index]
