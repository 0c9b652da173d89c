# SPDX-License-Identifier: Apache-2.0
"""A tensor with new values at positions that a tensor holds: x[i, j] = v, x[i, j] += v, index_copy, index_add. In place
when it is a state."""

from __future__ import annotations

import torch

from pumice.format.ir import DType
from pumice.lowering.call import Call
from pumice.lowering.operands import Size, axis, broadcast, is_one, number, numel
from pumice.lowering.ref import Ref
from pumice.lowering.registry import lowers
from pumice.lowering.sizes import same_shape
from pumice.ops.index import as_index, joined, side_by_side

aten = torch.ops.aten


def _fill(call: Call, x: Ref, values: Ref, shape: list[Size]) -> Ref:
    """`values` broadcast to `shape`; nothing runs when only dimensions of size 1 are missing."""
    values = call.cast(values, x.dtype)
    lead = len(shape) - values.rank
    if lead < 0:
        values = call.view(values, values.shape[-lead:])  # PyTorch ignores leading dimensions of size 1
        lead = 0
    same = same_shape([a for a in values.shape if not is_one(a)], [a for a in shape if not is_one(a)])
    return call.view(values, shape) if same else call.emit("expand", values, shape, out=call.temp(x.dtype, shape))


@lowers(aten.index_put.default, aten._unsafe_index_put.default)
def index_put(call: Call) -> None:
    """`self` with values at the places that index tensors name."""
    op = "index_add" if call["accumulate"] else "index_put"
    x, indices, values = call.tensor("self"), call["indices"], call.tensor("values")
    if [given.dtype for given in indices if given is not None] == [DType.bool]:
        if op == "index_add":
            call.refuse("adding through a bool mask is not supported")
        _put_mask(call, x, indices, values)
        return
    for given in indices:
        if given is not None:
            as_index(call, given)
    target, dims, given, order = side_by_side(call, x, indices)
    first, end = dims[0], dims[-1] + 1
    sizes = list(target.shape[first:end])
    places: list[Size] = []
    for ref in given:
        places = broadcast(places, ref.shape)
    at = joined(call, given, sizes)
    filled = _fill(call, x, values, [*target.shape[:first], *places, *target.shape[end:]])
    flat = [*target.shape[:first], numel(sizes), *target.shape[end:]]
    if len(sizes) == 1 and target is x:
        call.emit(op, x, at, filled, first)
        return
    new = call.emit(op, call.view(target, flat), at, filled, first, out=call.temp(x.dtype, flat))
    if target is x:
        call.emit("view", new, list(x.shape))
        return
    back = [order.index(dim) for dim in range(x.rank)]
    call.emit("permute", call.view(new, target.shape), back)


def _put_mask(call: Call, x: Ref, indices: list[Ref | None], values: Ref) -> None:
    """x[mask] = one number."""
    if not all(map(is_one, values.shape)):
        call.refuse("assigning several values through a bool mask is not supported: their places depend on the data")
    first = next(dim for dim, index in enumerate(indices) if index is not None)
    mask = indices[first]
    shape = [*mask.shape, *[1] * (x.rank - first - mask.rank)]
    call.emit("where", call.view(mask, shape), call.view(call.cast(values, x.dtype), []), x)


@lowers(aten.index_copy.default, aten.index_add.default)
def index_copy(call: Call) -> None:
    """`self` with slices replaced, or increased, at a vector of indices."""
    x, at, source = call.tensor("self"), as_index(call, call.tensor("index")), call.tensor("source")
    op = "index_put" if call.target is aten.index_copy.default else "index_add"
    if op == "index_add" and call["alpha"] != 1:
        alpha = number(call, call["alpha"], source.dtype)
        source = call.emit("mul", source, alpha, out=call.temp(source.dtype, source.shape))
    at = call.view(at, [numel(at.shape)])
    if x.rank == 0:
        one = call.emit(op, call.view(x, [1]), at, call.view(source, [1]), 0, out=call.temp(x.dtype, [1]))
        call.emit("view", one, [])
        return
    call.emit(op, x, at, source, axis(call["dim"], x.rank))
