# SPDX-License-Identifier: Apache-2.0
"""Reading at positions that a tensor holds: x[i, j], index_select, gather."""

from __future__ import annotations

import torch

from pumice.format.ir import DType
from pumice.lowering.call import Call
from pumice.lowering.operands import Size, axis, broadcast, is_one, numel
from pumice.lowering.ref import Ref
from pumice.lowering.registry import lowers
from pumice.lowering.sizes import same
from pumice.lowering.windows import places

aten = torch.ops.aten


def as_index(call: Call, index: Ref) -> Ref:
    """An index tensor as the operators take it: i64, or i32 as it is."""
    if index.dtype is DType.bool:
        call.refuse("indexing with a bool mask is not supported: the shape of its result depends on the data")
    if index.dtype is DType.u8:
        call.refuse("an index of bytes is not supported: call index.long() where it has places, not a mask")
    if index.dtype not in (DType.i64, DType.i32):
        call.refuse(f"an index of {index.dtype.name} is not supported")
    return index


def joined(call: Call, indices: list[Ref], sizes: list[Size]) -> Ref:
    """One index over dimensions that lie side by side, from one for each."""
    index, size = as_index(call, indices[0]), sizes[0]
    for other, other_size in zip(indices[1:], sizes[1:], strict=True):
        shape = broadcast(index.shape, as_index(call, other).shape)
        index = call.emit("index_linear", index, other, size, other_size, out=call.temp(DType.i64, shape))
        size = size * other_size
    return index


def side_by_side(call: Call, x: Ref, indices: list[Ref | None]) -> tuple[Ref, list[int], list[Ref], list[int]]:
    """(x, the indexed dimensions of it, their indices, the order x was permuted to). Indexed dimensions that are not
    neighbours come first, which is where PyTorch puts the result's."""
    dims = [dim for dim, index in enumerate(indices) if index is not None]
    given = [index for index in indices if index is not None]
    order = list(range(x.rank))
    if dims != list(range(dims[0], dims[-1] + 1)):
        order = dims + [dim for dim in order if dim not in dims]
        x = call.emit("permute", x, order, out=call.temp(x.dtype, [x.shape[dim] for dim in order]))
        dims = list(range(len(dims)))
    return x, dims, given, order


_SHAPES = (aten.unsqueeze.default, aten.view.default, aten.reshape.default, aten.alias.default, aten.clone.default)
_ARANGES = (aten.arange.default, aten.arange.start, aten.arange.start_step)


def counts_all(index: Ref, size: Size) -> bool:
    """Whether an index is 0, 1, .. size-1 (under any shape), as transformers writes mask[batch, position]."""
    node = index.node
    while node is not None and node.target in _SHAPES:
        node = node.args[0]
    if node is None or node.target not in _ARANGES or not same(node.meta["val"].shape[0], size):
        return False
    bounds = node.args if node.target is not aten.arange.default else (0, *node.args)
    return bounds[0] == 0 and (len(bounds) < 3 or bounds[2] == 1)


def _is_view(x: Ref, dims: list[int], given: list[Ref]) -> bool:
    """Whether the indices pick everything in order: each counts along its own dimension, one after the other."""
    rank, last = max(index.rank for index in given), -1
    for dim, index in zip(dims, given, strict=True):
        places = [at + rank - index.rank for at, size in enumerate(index.shape) if not is_one(size)]
        if len(places) != 1 or places[0] <= last or not counts_all(index, x.shape[dim]):
            return False
        last = places[0]
    return True


@lowers(aten.index.Tensor, aten._unsafe_index.Tensor)
def index(call: Call) -> None:
    """Elements or slices by one or several index tensors."""
    x, indices = call.tensor("self"), call["indices"]
    for given in indices:
        if given is not None:
            as_index(call, given)
    if all(given is None for given in indices):
        call.emit("view", x, list(call.out.shape))
        return
    x, dims, given, _ = side_by_side(call, x, indices)
    if _is_view(x, dims, given):
        call.emit("view", x, list(call.out.shape))
        return
    first, end = dims[0], dims[-1] + 1
    sizes = list(x.shape[first:end])
    at = joined(call, given, sizes)
    call.emit("index_select", call.view(x, [*x.shape[:first], numel(sizes), *x.shape[end:]]), at, first)


@lowers(aten.index_select.default)
def index_select(call: Call) -> None:
    """Slices of one dimension by a vector of indices."""
    x, at = call.tensor("self"), as_index(call, call.tensor("index"))
    if x.rank == 0:
        picked = call.emit("index_select", call.view(x, [1]), call.view(at, [1]), 0, out=call.temp(x.dtype, [1]))
        call.emit("view", picked, [])
        return
    call.emit("index_select", x, call.view(at, [numel(at.shape)]), call["dim"])


@lowers(aten.gather.default)
def gather(call: Call) -> None:
    """Elements along one dimension by an index of the result's shape."""
    x, at = call.tensor("self"), as_index(call, call.tensor("index"))
    if x.rank == 0 or at.rank == 0:
        x, at = (call.view(ref, [1]) if ref.rank == 0 else ref for ref in (x, at))
        call.emit("view", call.emit("gather", x, at, 0, out=call.temp(x.dtype, at.shape)), list(call.out.shape))
        return
    call.emit("gather", x, at, axis(call["dim"], x.rank))


def _picked(call: Call, x: Ref, places: torch.Tensor, key: str) -> None:
    """The elements of x at places in its storage order, which are known at export."""
    if x.rank == 0:
        x = call.view(x, [1])
    index = call.constant(key, DType.i32, tuple(places.shape), lambda: places)
    call.emit("index_select", call.view(x, [numel(x.shape)]), index, 0)


@lowers(aten.as_strided.default, aten.as_strided_copy.default)
def as_strided(call: Call) -> None:
    """Elements by steps through the storage, of a contiguous tensor of fixed sizes (passes/normalize.py looks)."""
    x, size, stride, first = call.tensor("self"), call["size"], call["stride"], call["storage_offset"] or 0
    if not call.node.meta.get("of_contiguous"):
        call.refuse("as_strided of a tensor that is not contiguous, or begins inside of another, is not supported")
    if not all(isinstance(number, int) for number in (*x.shape, *size, *stride, first)):
        call.refuse("as_strided of sizes that depend on the inputs is not supported")
    at = torch.full((), first)
    for count, step in zip(size, stride, strict=True):
        at = at[..., None] + torch.arange(count) * step
    if at.numel() and (int(at.min()) < 0 or int(at.max()) >= numel(x.shape)):
        call.refuse("as_strided that reads outside of its tensor")
    _picked(call, x, at.to(torch.int32), f"places {size} {stride} {first}")


@lowers(aten.unfold.default, aten.unfold_copy.default)
def unfold(call: Call) -> None:
    """Windows of one dimension, of which the new last dimension has the elements."""
    x, size, step = call.tensor("self"), call["size"], call["step"]
    if x.rank == 0:
        call.emit("view", x, list(call.out.shape))
        return
    dim = axis(call["dimension"], x.rank)
    count = call.out.shape[dim]
    index = places(call, count, step, size)
    windows = [*x.shape[:dim], count, size, *x.shape[dim + 1 :]]
    picked = call.emit("index_select", x, index, dim, out=call.temp(x.dtype, windows))
    call.emit("permute", picked, [*range(dim + 1), *range(dim + 2, x.rank + 1), dim + 1])
