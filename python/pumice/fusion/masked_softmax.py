# SPDX-License-Identifier: Apache-2.0
"""softmax(x * factor + mask), softmax(where(condition, x / divisor, value)) and their like -> masked_softmax, as
attention that is written by hand has them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch

from pumice.format.ir import DType
from pumice.lowering.call import Call
from pumice.lowering.operands import FLOATS, axis, unexpanded
from pumice.lowering.ref import Ref
from pumice.lowering.registry import fuses
from pumice.lowering.sizes import same_shape
from pumice.ops.binary import pair

aten = torch.ops.aten
_SCALES = {
    aten.mul.Tensor: "factor",
    aten.mul.Scalar: "factor",
    aten.div.Tensor: "divisor",
    aten.div.Scalar: "divisor",
    aten.true_divide.Tensor: "divisor",
}
_WHERES = (aten.where.self, aten.where.ScalarOther, aten.where.ScalarSelf)
_FILLS = (aten.masked_fill.Scalar, aten.masked_fill.Tensor)


@dataclass(frozen=True)
class _Scores:
    """The arguments of the operator."""

    x: Ref
    factor: float | None = None
    divisor: float | None = None
    mask: Ref | None = None
    condition: Ref | None = None
    keep: bool = True
    value: Any = None


def _is_whole(call: Call, side: Any) -> bool:
    return isinstance(side, Ref) and side.dtype is call.out.dtype and same_shape(side.shape, call.out.shape)


def _chosen(call: Call, scores: _Scores) -> _Scores:
    """Takes a `where` that makes x."""
    where = call.producer(scores.x, *_WHERES, *_FILLS, single_use=True)
    if where is None:
        return scores
    if where.target in _FILLS:
        condition, value, x, keep = where["mask"], where["value"], where["self"], False
    else:
        condition, a, b = where["condition"], where["self"], where["other"]
        keep = _is_whole(call, a)
        x, value = (a, b) if keep else (b, a)
    number = isinstance(value, int | float)
    if not _is_whole(call, x) or not (number or (isinstance(value, Ref) and value.dtype is x.dtype)):
        return scores
    if not isinstance(condition, Ref) or condition.dtype is not DType.bool:
        return scores
    value = float(value) if number else unexpanded(where, value, [x])
    return replace(scores, x=x, condition=unexpanded(where, condition, [x]), keep=keep, value=value)


def _masked(call: Call, scores: _Scores) -> _Scores:
    """Takes a sum that makes x."""
    add = call.producer(scores.x, aten.add.Tensor, single_use=True)
    if add is None or add["alpha"] != 1:
        return scores
    sides = pair(add)
    found = [
        replace(scores, x=x, mask=mask)
        for x, mask in (sides, sides[::-1])
        if _is_whole(call, x) and isinstance(mask, Ref) and mask.dtype is x.dtype and not x.is_same(mask)
    ]
    scaled = (each for each in found if _scaled(call, each) is not each)
    return next(scaled, found[0] if found else scores)


def _scaled(call: Call, scores: _Scores) -> _Scores:
    """Takes a product with a number that makes x."""
    scale = call.producer(scores.x, *_SCALES, single_use=True)
    if scale is None or not _is_whole(call, scale["self"]) or not isinstance(scale["other"], int | float):
        return scores
    number = {_SCALES[scale.target]: float(scale["other"])}
    return replace(scores, x=scale["self"], **number)


@fuses(aten.softmax.int, aten._softmax.default)
def masked_softmax(call: Call) -> Callable[[], None] | None:
    """Matches what the softmax of the last dimension alone reads."""
    x = call.tensor("self")
    if x.rank == 0 or axis(call["dim"], x.rank) != x.rank - 1 or x.dtype not in FLOATS or not _is_whole(call, x):
        return None
    scores = _scaled(call, _masked(call, _chosen(call, _Scores(x))))
    if scores.x is x:
        return None
    arguments = (scores.factor, scores.divisor, scores.mask, scores.condition, scores.keep, scores.value)
    return lambda: call.emit("masked_softmax", scores.x, *arguments)
