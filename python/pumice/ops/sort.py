# SPDX-License-Identifier: Apache-2.0
"""Sorted rows: sort, topk, and what is read from them: kthvalue, median."""

from __future__ import annotations

import torch

from pumice.format.ir import DType
from pumice.lowering.call import Call
from pumice.lowering.operands import FLOATS, axis, numel
from pumice.lowering.ref import Ref
from pumice.lowering.registry import lowers

aten = torch.ops.aten


@lowers(aten.sort.default, aten.sort.stable)
def sort(call: Call) -> None:
    """Values and places; equal elements stay in their order, asked for or not."""
    call.emit("sort", call.tensor("self"), call["dim"], call["descending"])


@lowers(aten.topk.default)
def topk(call: Call) -> None:
    """The k largest or smallest, in order, asked for or not; of equal ones the first."""
    x = call.tensor("self")
    call.emit("topk", x, call["k"], axis(call["dim"], x.rank), call["largest"])


def _sorted(call: Call, x: Ref, dim: int, place: int) -> list[Ref]:
    """The value at `place` of each row in order, and where it was; the dimension has the size 1."""
    kept = [*x.shape[:dim], place + 1, *x.shape[dim + 1 :]]
    found = [call.temp(x.dtype, kept), call.temp(DType.i64, kept)]
    call.emit("topk", x, place + 1, dim, False, out=found)
    one = [*x.shape[:dim], 1, *x.shape[dim + 1 :]]
    return [call.emit("slice", ref, dim, place, place + 1, 1, out=call.temp(ref.dtype, one)) for ref in found]


def _extent(call: Call, x: Ref, dim: int) -> int:
    if not isinstance(x.shape[dim], int) or x.shape[dim] == 0:
        call.refuse("the order of a dimension that is empty or depends on the inputs is not supported")
    return x.shape[dim]


@lowers(aten.kthvalue.default)
def kthvalue(call: Call) -> None:
    """The k-th smallest and its place."""
    x = call.tensor("self")
    x = call.view(x, [1]) if x.rank == 0 else x
    dim = axis(call["dim"], x.rank)
    _extent(call, x, dim)
    for ref, out in zip(_sorted(call, x, dim, call["k"] - 1), call.outs, strict=True):
        call.emit("view", ref, list(out.shape), out=out)


def _median(call: Call, x: Ref, dim: int) -> list[Ref]:
    """The lower one of two in the middle. Where there is a NaN it is that, and the place of the first."""
    count = _extent(call, x, dim)
    found = _sorted(call, x, dim, (count - 1) // 2)
    if x.dtype not in FLOATS:
        return found
    one = found[0].shape
    last = call.emit("amax", x, [dim], True, out=call.temp(x.dtype, one))
    place = call.emit("argmax", x, [dim], True, out=call.temp(DType.i64, one))
    unordered = call.emit("ne", last, last, out=call.temp(DType.bool, one))
    pairs = zip((last, place), found, strict=True)
    return [call.emit("where", unordered, nan, ref, out=call.temp(ref.dtype, one)) for nan, ref in pairs]


@lowers(aten.median.dim)
def median_of_a_dimension(call: Call) -> None:
    """The value and its place."""
    x = call.tensor("self")
    x = call.view(x, [1]) if x.rank == 0 else x
    for ref, out in zip(_median(call, x, axis(call["dim"], x.rank)), call.outs, strict=True):
        call.emit("view", ref, list(out.shape), out=out)


@lowers(aten.median.default)
def median(call: Call) -> None:
    """Of all elements."""
    x = call.tensor("self")
    call.emit("view", _median(call, call.view(x, [numel(x.shape)]), 0)[0], [])
