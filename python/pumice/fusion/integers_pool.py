# SPDX-License-Identifier: Apache-2.0
"""Pooling of integers: the largest ones as they are, means by q8ta operators."""

from __future__ import annotations

import operator
from typing import Any

import torch

from pumice.fusion.integers import Step, Target, computes, moves
from pumice.lowering.call import Call
from pumice.lowering.operands import axes
from pumice.lowering.quantized import QuantizedTensor
from pumice.lowering.quantized_activation import per_tensor
from pumice.lowering.ref import Ref
from pumice.ops import pool

aten = torch.ops.aten


@moves(*pool.MAXIMA, *pool.WITH_PLACES)
def largest(call: Call, _: Target) -> Any:
    """The largest integers of windows; the indices do not match."""
    readers = [user for user in call.node.users if user.target is operator.getitem]
    if call.target in pool.WITH_PLACES and any(user.args[1] != 0 for user in readers):
        return None
    window = pool.window(call)
    return lambda x, out: call.emit("max_pool", x[0], *window, out=out)


@computes(*pool.MEANS)
def mean_of_windows(call: Call, act: str, to: Target) -> Step | None:
    """Means over windows."""
    q = _source(call, act, to)
    if q is None:
        return None
    more = (*pool.window(call), *pool.tail(call), *_numbers(q, to))
    return lambda out: call.emit("q8ta_avg_pool", q.data, *more, out=out)


@computes(*pool.ADAPTIVE)
def mean_to_size(call: Call, act: str, to: Target) -> Step | None:
    """Adaptive means."""
    q = _source(call, act, to)
    if q is None:
        return None
    more = (pool.size(call), *_numbers(q, to))
    return lambda out: call.emit("q8ta_adaptive_avg_pool", q.data, *more, out=out)


@computes(aten.mean.dim)
def mean_of_images(call: Call, act: str, to: Target) -> Step | None:
    """Over the last two dimensions."""
    q, x = _source(call, act, to), call.tensor("self")
    if q is None or x.rank < 3 or axes(call["dim"], x.rank) != [x.rank - 2, x.rank - 1]:
        return None
    shape = [*x.shape[:-2], 1, 1]

    def step(out: Ref) -> None:
        temp = call.temp(to.dtype, shape)
        mean = call.emit("q8ta_adaptive_avg_pool", q.data, [1, 1], *_numbers(q, to), out=temp)
        call.emit("view", mean, list(out.shape), out=out)

    return step


def _source(call: Call, act: str, to: Target) -> QuantizedTensor | None:
    q = per_tensor(call, call.tensor("self")) if act == "none" else None
    return q if q is not None and q.data.dtype is to.dtype else None


def _numbers(q: QuantizedTensor, to: Target) -> tuple:
    return (float(q.scale), int(q.zero), *to.numbers)
