# SPDX-License-Identifier: Apache-2.0
"""Linear layers that read the same input, as one product: their weights one below the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from pumice.lowering.call import Call
from pumice.lowering.quantized_activation import before_views
from pumice.lowering.quantized_weight import QuantizedWeight, quantized_weight
from pumice.lowering.ref import Ref
from pumice.ops.linear import emit_quantized


@dataclass(frozen=True)
class Product:
    """x @ weight.T + bias of the node of `call`: x [..., K]; weight [N, K], also dequantized; bias [N], or None."""

    call: Call
    x: Ref
    weight: Ref
    bias: Ref | None


def emit_merged(call: Call, layers: Sequence[Product | None]) -> Ref | None:
    """The results of the layers side by side, [..., N1 + N2 + ..], by one product; None where they do not fit together:
    another input, another kind of weight, a bias of some alone. x: [..., K]; weights [N, K], floats or integers."""
    first = layers[0]
    if first is None or any(not _alike(first, layer) for layer in layers):
        return None
    weights = [quantized_weight(layer.call, layer.weight) for layer in layers]
    if any(not _same_form(weights[0], weight) for weight in weights):
        return None
    x = call.view(before_views(call, first.x), list(first.x.shape))
    bias = None if first.bias is None else _stacked(call, [layer.bias for layer in layers])
    rows = sum(layer.weight.shape[0] for layer in layers)
    out = call.temp(x.dtype, [*x.shape[:-1], rows])
    if weights[0] is None:
        call.emit("linear", x, _stacked(call, [layer.weight for layer in layers]), bias, 0, None, out=out)
        return out
    q = weights[0]
    zero = None if q.zero is None else _stacked(call, [weight.zero for weight in weights])
    data, scale = (_stacked(call, [getattr(weight, name) for weight in weights]) for name in ("data", "scale"))
    whole = QuantizedWeight(data, scale, zero, q.bits, q.group, q.columns, q.out_dtype)
    emit_quantized(call, x, None, whole, bias, out, 0, None)
    return out


def _alike(a: Product, b: Product | None) -> bool:
    if b is None:
        return False
    same_bias = (a.bias is None) == (b.bias is None) and (a.bias is None or (a.bias.is_constant and b.bias.is_constant))
    plain = a.x.dtype is b.x.dtype and a.weight.dtype is b.weight.dtype
    return same_bias and plain and before_views(a.call, a.x).is_same(before_views(b.call, b.x))


def _same_form(a: QuantizedWeight | None, b: QuantizedWeight | None) -> bool:
    if a is None or b is None:
        return a is b
    key: Any = lambda w: (w.bits, w.group, w.columns, w.out_dtype, w.scale.dtype, w.zero is None)  # noqa: E731
    return key(a) == key(b)


def _stacked(call: Call, refs: Sequence[Ref]) -> Ref:
    """Constants one below the other, as one constant."""
    shape = [sum(ref.shape[0] for ref in refs), *refs[0].shape[1:]]
    key = " | ".join(ref.key for ref in refs)
    return call.constant(key, refs[0].dtype, shape, lambda: torch.cat([call.value(ref) for ref in refs]))
