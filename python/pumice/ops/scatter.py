# SPDX-License-Identifier: Apache-2.0
"""A tensor with elements joined to it at places along one dimension: scatter, scatter_add, scatter_reduce; by a
mask. The last of equal indices counts; sums are in their order, the same in every run."""

from __future__ import annotations

from typing import Any

import torch

from pumice.format.ir import DType
from pumice.lowering.call import Call
from pumice.lowering.operands import FLOATS, axis, numel, operand
from pumice.lowering.ref import Ref
from pumice.lowering.registry import lowers
from pumice.lowering.sizes import same_shape
from pumice.ops.index import as_index

aten = torch.ops.aten

_REDUCTIONS = {
    "sum": "scatter_add",
    "add": "scatter_add",
    "prod": "scatter_prod",
    "multiply": "scatter_prod",
    "mean": "scatter_mean",
    "amax": "scatter_max",
    "amin": "scatter_min",
}


def _scatter(call: Call, op: str, src: Any, *include_self: bool) -> None:
    x, index = call.tensor("self"), as_index(call, call.tensor("index"))
    if op == "scatter_mean" and x.dtype not in FLOATS:
        call.refuse(f"the mean of {x.dtype.name} is not supported, of floats it is")
    if op == "scatter_prod" and x.dtype is DType.i64:
        call.refuse("products of i64 are not supported: convert to i32 or f32")
    if op != "scatter" and x.dtype is DType.bool:
        call.refuse("reductions of bool are not supported: convert to i32")
    src = operand(call, src, x.dtype)
    if x.rank:
        call.emit(op, x, index, src, axis(call["dim"], x.rank), *include_self)
        return
    src = call.view(src, [1]) if isinstance(src, Ref) else src
    one = call.emit(op, call.view(x, [1]), call.view(index, [1]), src, 0, *include_self, out=call.temp(x.dtype, [1]))
    call.emit("view", one, [])


@lowers(aten.scatter.src)
def scatter_src(call: Call) -> None:
    """self with elements of src."""
    _scatter(call, "scatter", call.tensor("src"))


@lowers(aten.scatter.value)
def scatter_value(call: Call) -> None:
    """self with a number, of bool whether it is not 0."""
    value = call["value"]
    _scatter(call, "scatter", bool(value) if call.out.dtype is DType.bool else value)


@lowers(aten.scatter_add.default)
def scatter_add(call: Call) -> None:
    """self plus elements of src."""
    _scatter(call, "scatter_add", call.tensor("src"), True)


@lowers(aten.scatter.reduce, aten.scatter.value_reduce)
def scatter_by(call: Call) -> None:
    """The older form of scatter_reduce."""
    src = call["value"] if call.target is aten.scatter.value_reduce else call.tensor("src")
    _scatter(call, _REDUCTIONS[call["reduce"]], src, True)


@lowers(aten.scatter_reduce.two)
def scatter_reduce(call: Call) -> None:
    """Sums, products, means, extrema of what falls on one place, with the element that was there or without."""
    _scatter(call, _REDUCTIONS[call["reduce"]], call.tensor("src"), bool(call["include_self"]))


@lowers(aten.masked_scatter.default)
def masked_scatter(call: Call) -> None:
    """Elements of source, one after another, where the mask is true: how many came before is a running sum of the mask.
    Where source has too few, an index out of range fails the run."""
    x, mask, source = call.tensor("self"), call.tensor("mask"), call.tensor("source")
    shape, count = list(call.out.shape), numel(call.out.shape)
    if not same_shape(x.shape, shape):
        x = call.emit("expand", x, shape, out=call.temp(x.dtype, shape))
    if isinstance(numel(source.shape), int) and numel(source.shape) == 0:
        call.refuse("masked_scatter of no elements is not supported")
    if not same_shape(mask.shape, shape):
        mask = call.emit("expand", mask, shape, out=call.temp(mask.dtype, shape))
    flat = call.cast(call.view(mask, [count]), DType.i32)
    before = call.emit("cumsum", flat, 0, out=call.temp(DType.i32, [count]))
    # Where the mask is false the element is read from the first place, and dropped.
    place = call.emit("mul", before, flat, out=call.temp(DType.i32, [count]))
    place = call.emit("sub", place, flat, 1.0, out=call.temp(DType.i32, [count]))
    values = call.view(call.cast(source, x.dtype), [numel(source.shape)])
    picked = call.emit("index_select", values, place, 0, out=call.temp(x.dtype, [count]))
    call.emit("where", mask, call.view(picked, shape), x)
