# SPDX-License-Identifier: Apache-2.0
"""Finds a rotary position embedding of neighbours, as ExecuTorch's Llama writes it.

a, b = x[.., 2i], x[.., 2i + 1]      stack(a * cos - b * sin, a * sin + b * cos) in their places
"""

from __future__ import annotations

import operator
from typing import Any

import torch

from pumice.format.ir import DType
from pumice.fusion.rope import Rotated
from pumice.lowering.call import Call
from pumice.lowering.operands import is_one
from pumice.lowering.quantized_activation import VIEWS
from pumice.lowering.ref import Ref
from pumice.lowering.sizes import same, same_shape

aten = torch.ops.aten
_CASTS = (aten._to_copy.default, aten.to.dtype, aten.type_as.default)


def interleaved(call: Call, ref: Ref) -> Rotated | None:
    """The rotation that made `ref` [B, L, H, E] for the node of `call` alone; None when there is none. In between may
    be a wider type than that of `ref`, as the operator computes in fp32, too."""
    stack = call.producer(_before_view(call, _uncast(call, ref)), aten.stack.default, single_use=True)
    if stack is None or len(stack["tensors"]) != 2 or stack["dim"] not in (-1, 4):
        return None
    low, high = stack["tensors"]
    sub = stack.producer(low, aten.sub.Tensor, single_use=True)
    add = stack.producer(high, aten.add.Tensor, single_use=True)
    if sub is None or add is None or not sub["alpha"] == add["alpha"] == 1:
        return None
    for a, cos in _factors(sub, "self"):
        for b, sin in _factors(sub, "other"):
            pairs = _pairs(sub, a, b)
            if pairs is not None and _is_sum(add, (a, sin), (b, cos)):
                return _rotated(stack, ref, pairs, cos, sin)
    return None


def _factors(call: Call, name: str) -> list[tuple[Ref, Ref]]:
    """Of an operand that is a product, in both orders."""
    mul = call.producer(call[name], aten.mul.Tensor, single_use=True) if isinstance(call[name], Ref) else None
    a, b = (mul["self"], mul["other"]) if mul is not None else (None, None)
    return [(a, b), (b, a)] if isinstance(a, Ref) and isinstance(b, Ref) else []


def _is_sum(add: Call, *products: tuple[Ref, Ref]) -> bool:
    def equal(name: str, product: tuple[Ref, Ref]) -> bool:
        return any(x.is_same(product[0]) and y.is_same(product[1]) for x, y in _factors(add, name))

    first, second = products
    return (equal("self", first) and equal("other", second)) or (equal("self", second) and equal("other", first))


def _pairs(call: Call, a: Ref, b: Ref) -> Ref | None:
    """[.., E / 2, 2], of which a and b are the elements 0 and 1 of the last dimension."""
    low, high = (_element(call, ref) for ref in (a, b))
    whole = low is not None and high is not None and low[0].is_same(high[0])
    return low[0] if whole and (low[1], high[1]) == (0, 1) and low[0].shape[-1] == 2 else None


def _element(call: Call, ref: Ref) -> tuple[Ref, Any] | None:
    """(x, i) of x[.., i], in the forms of ATen and of ExecuTorch's edge dialect."""
    unbind = call.producer(ref, aten.unbind.int)
    if unbind is not None:
        x = unbind.tensor("self")
        is_item = ref.node.target is operator.getitem and unbind["dim"] in (-1, x.rank - 1)
        return (x, ref.node.args[1]) if is_item else None
    select = call.producer(ref, aten.select.int)
    if select is not None:
        x = select.tensor("self")
        return (x, select["index"]) if select["dim"] in (-1, x.rank - 1) else None
    squeeze = call.producer(ref, aten.squeeze.dims, aten.squeeze.dim)
    cut = squeeze and squeeze.producer(squeeze.tensor("self"), aten.slice.Tensor)
    if not cut or not same_shape(ref.shape, squeeze.tensor("self").shape[:-1]):
        return None
    x = cut.tensor("self")
    last = cut["dim"] in (-1, x.rank - 1) and cut["step"] == 1 and is_one(squeeze.tensor("self").shape[-1])
    return (x, cut["start"] or 0) if last else None


def _rotated(stack: Call, out: Ref, pairs: Ref, cos: Ref, sin: Ref) -> Rotated | None:
    x = _uncast(stack, _before_view(stack, pairs))
    angles = [_angles(stack, ref, pairs.shape[-2]) for ref in (cos, sin)]
    whole = x.rank == 4 and same_shape(x.shape, out.shape) and same_shape(stack.out.shape, pairs.shape)
    heads = pairs.rank == 5 and same_shape(x.shape[:3], pairs.shape[:3])
    if not whole or not heads or None in angles or stack.out.dtype not in (out.dtype, DType.f32):
        return None
    typed = all(ref.dtype is out.dtype for ref in (x, *angles))
    return Rotated(x, *angles, rows_first=True, interleaved=True) if typed else None


def _angles(call: Call, ref: Ref, columns: Any) -> Ref | None:
    """[L, E / 2] of cos or sin as a view [1, L, 1, E / 2]."""
    inner = _uncast(call, _before_view(call, _uncast(call, ref)))
    fits = ref.rank == 4 and is_one(ref.shape[0]) and is_one(ref.shape[2]) and inner.rank == 2
    rows = fits and same(ref.shape[1], inner.shape[0])
    return inner if rows and same(ref.shape[3], columns) and same(inner.shape[1], columns) else None


def _before_view(call: Call, ref: Ref) -> Ref:
    view = call.producer(ref, *VIEWS)
    return ref if view is None else view.tensor("self")


def _uncast(call: Call, ref: Ref) -> Ref:
    cast = call.producer(ref, *_CASTS)
    return ref if cast is None else cast.tensor("self")
