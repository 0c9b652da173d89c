# SPDX-License-Identifier: Apache-2.0
"""Linear layers that read the same input, as one product: their weights as one, with the norm that made the input."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from pumice.fusion.product import Product
from pumice.fusion.rms_norm import RmsNorm, rms_norm_made
from pumice.lowering.call import Call
from pumice.lowering.operands import ACTIVATIONS
from pumice.lowering.quantized_activation import Chosen, before_views, quantized_activation
from pumice.lowering.quantized_weight import QuantizedWeight, quantized_weight
from pumice.lowering.ref import Ref
from pumice.ops.linear import emit_quantized


@dataclass(frozen=True)
class Merged:
    """Layers as one: weight [N1 + N2 + .., K], floats or integers, read when the file is written; `quantizes`: x is to
    be quantized."""

    x: Ref
    weight: Ref | QuantizedWeight
    bias: Ref | None
    quantizes: bool

    @property
    def rows(self) -> int:
        """N1 + N2 + .."""
        return (self.weight.data if isinstance(self.weight, QuantizedWeight) else self.weight).shape[0]


def merged(call: Call, layers: Sequence[Product | None], block: int = 0) -> Merged | None:
    """The layers as one; None where they do not fit together: another input, another kind of weight, a bias of some
    alone. `block`: rows that are taken of each layer in turn; 0: all."""
    first = layers[0]
    if first is None or any(not _alike(first, layer) for layer in layers):
        return None
    weights = [quantized_weight(layer.call, layer.weight) for layer in layers]
    if any(not _same_form(weights[0], weight) for weight in weights):
        return None
    bias = None if first.bias is None else _stacked(call, [layer.bias for layer in layers], block)
    quantizes = quantized_activation(first.call, first.x) is not None
    q = weights[0]
    if q is None:
        return Merged(first.x, _stacked(call, [layer.weight for layer in layers], block), bias, quantizes)
    zero = None if q.zero is None else _stacked(call, [weight.zero for weight in weights], block)
    data, scale = (_stacked(call, [getattr(weight, name) for weight in weights], block) for name in ("data", "scale"))
    whole = QuantizedWeight(data, scale, zero, q.bits, q.group, q.columns, q.out_dtype)
    return Merged(first.x, whole, bias, quantizes)


def emit_merged(call: Call, layers: Sequence[Product | None]) -> Ref | None:
    """The results of the layers side by side, [..., N1 + N2 + ..], by one product; None as of `merged`."""
    layer = merged(call, layers)
    if layer is None:
        return None
    out = call.temp(layer.x.dtype, [*layer.x.shape[:-1], layer.rows])
    norm = norm_in_front(call, layer)
    if norm is not None:
        emit_fused(call, layer, norm, "none", False, out)
        return out
    activation = quantized_activation(layers[0].call, layers[0].x)
    x = layer.x if activation is not None else call.view(before_views(call, layer.x), list(layer.x.shape))
    if isinstance(layer.weight, QuantizedWeight):
        emit_quantized(call, x, activation, layer.weight, layer.bias, out, 0, None)
    else:
        call.emit("linear", x, layer.weight, layer.bias, 0, None, out=out)
    return out


def norm_in_front(call: Call, layer: Merged) -> RmsNorm | None:
    """The norm that made x, where a product can take it in."""
    if layer.quantizes or not can_fuse(layer):
        return None
    norm = rms_norm_made(call, before_views(call, layer.x))
    return norm if norm is not None and norm.x.dtype is layer.x.dtype else None


def can_fuse(layer: Merged) -> bool:
    """Whether ops/fused_linear.cpp takes the layer: floats that are whole groups of eight."""
    columns = layer.x.shape[-1]
    return not layer.quantizes and isinstance(columns, int) and columns % 8 == 0


def emit_fused(call: Call, layer: Merged, norm: RmsNorm | None, act: str, gated: bool, out: Ref) -> None:
    """out = gate(act(norm(x) @ weight.T + bias)) by ops/fused_linear.cpp, whose formula this is. `act`: a name of
    ACTIVATIONS. `out`: [..., N], [..., N / 2] where it is gated."""
    x = before_views(call, layer.x) if norm is None else norm.x
    x = call.view(x, list(layer.x.shape))
    factor, eps = (None, 0.0) if norm is None else (call.cast(norm.weight, x.dtype), norm.eps)
    q = layer.weight
    parts = (q.data, q.scale, q.zero) if isinstance(q, QuantizedWeight) else (q, None, None)
    group = q.group if isinstance(q, QuantizedWeight) else 0
    call.emit("fused_linear", x, factor, eps, *parts, layer.bias, group, ACTIVATIONS[act], gated, out=out)


def _alike(a: Product, b: Product | None) -> bool:
    if b is None:
        return False
    same_bias = (a.bias is None) == (b.bias is None) and (a.bias is None or (a.bias.is_constant and b.bias.is_constant))
    plain = a.x.dtype is b.x.dtype and a.weight.dtype is b.weight.dtype
    return same_bias and plain and _same_input(a, b)


def _same_input(a: Product, b: Product) -> bool:
    """Each layer of 8da4w quantizes its input in nodes of its own, which all read one tensor."""
    first, second = (quantized_activation(layer.call, layer.x) for layer in (a, b))
    if isinstance(first, Chosen) and isinstance(second, Chosen):
        numbers: Any = lambda c: (c.mapping, c.low, c.high, c.eps, c.per_token)  # noqa: E731
        same_source = before_views(a.call, first.x).is_same(before_views(b.call, second.x))
        return same_source and numbers(first) == numbers(second)
    return before_views(a.call, a.x).is_same(before_views(b.call, b.x))


def _same_form(a: QuantizedWeight | None, b: QuantizedWeight | None) -> bool:
    if a is None or b is None:
        return a is b
    key: Any = lambda w: (w.bits, w.group, w.columns, w.out_dtype, w.scale.dtype, w.zero is None)  # noqa: E731
    return key(a) == key(b)


def _stacked(call: Call, refs: Sequence[Ref], block: int) -> Ref:
    """Constants one below the other, as one constant; `block` as of `merged`."""
    shape = [sum(ref.shape[0] for ref in refs), *refs[0].shape[1:]]
    key = (f" /{block}/ " if block else " | ").join(ref.key for ref in refs)

    def values() -> torch.Tensor:
        parts = [call.value(ref) for ref in refs]
        if not block:
            return torch.cat(parts)
        return torch.cat([part.unflatten(0, (-1, block)) for part in parts], 1).flatten(0, 1)

    return call.constant(key, refs[0].dtype, shape, values)
