# SPDX-License-Identifier: Apache-2.0
"""Operators that read a tensor in another order: permute, expand, slice, select, split, repeat, flip."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from pumice.lowering import sizes
from pumice.lowering.call import Call
from pumice.lowering.operands import END, Size, axis, is_one, numel, used_outputs
from pumice.lowering.ref import Ref
from pumice.lowering.registry import lowers

aten = torch.ops.aten
SPLITS = (
    aten.split.Tensor,
    aten.split.sizes,
    aten.split_copy.Tensor,
    aten.split_with_sizes.default,
    aten.split_with_sizes_copy.default,
    aten.chunk.default,
)
UNBINDS = (aten.unbind.int, aten.unbind_copy.int)


def _permute(call: Call, x: Ref, dims: Sequence[int]) -> None:
    """A permutation that moves dimensions of size 1 only is a view."""
    dims = [axis(dim, x.rank) for dim in dims]
    moved = [dim for dim in dims if not is_one(x.shape[dim])]
    if moved == sorted(moved):
        call.emit("view", x, list(call.out.shape))
    else:
        call.emit("permute", x, dims)


@lowers(aten.permute.default, aten.permute_copy.default)
def permute(call: Call) -> None:
    """Dimensions in another order."""
    _permute(call, call.tensor("self"), call["dims"])


@lowers(aten.transpose.int, aten.transpose_copy.int)
def transpose(call: Call) -> None:
    """Two dimensions exchanged."""
    x = call.tensor("self")
    dims = list(range(x.rank))
    if dims:
        a, b = axis(call["dim0"], x.rank), axis(call["dim1"], x.rank)
        dims[a], dims[b] = b, a
    _permute(call, x, dims)


@lowers(aten.t.default, aten.t_copy.default)
def t(call: Call) -> None:
    """The transpose of a matrix; a vector stays."""
    x = call.tensor("self")
    _permute(call, x, range(x.rank)[::-1])


def _expand(call: Call, x: Ref, shape: Sequence[int | torch.SymInt]) -> None:
    added = len(shape) - x.rank
    if all(map(is_one, shape[:added])) and sizes.same_shape(x.shape, shape[added:]):
        call.emit("view", x, list(shape))
    else:
        call.emit("expand", x, list(shape))


@lowers(aten.expand.default, aten.expand_copy.default)
def expand(call: Call) -> None:
    """Dimensions of size 1 repeated."""
    _expand(call, call.tensor("self"), call.out.shape)


@lowers(aten.copy.default)
def copy(call: Call) -> None:
    """The values of `src` with the dtype and shape of `self`."""
    _expand(call, call.cast(call.tensor("src"), call.out.dtype), call.out.shape)


@lowers(aten.repeat.default)
def repeat(call: Call) -> None:
    """The whole tensor repeated along each dimension."""
    x, repeats = call.tensor("self"), call["repeats"]
    if all(map(is_one, repeats)):
        call.emit("view", x, list(call.out.shape))
        return
    if _counters(x, repeats) > 8:
        call.refuse("the kernel counts over 8 dimensions; these repeats and the dimensions between them are more")
    call.emit("repeat", x, repeats)


def _counters(x: Ref, repeats: Sequence[int | torch.SymInt]) -> int:
    """Every repeat, and every run of dimensions between two of them."""
    counters, in_run = 0, False
    for times, size in zip(repeats, [1] * (len(repeats) - x.rank) + list(x.shape), strict=True):
        if not is_one(times):
            counters, in_run = counters + 1, False
        if not is_one(size) and not in_run:
            counters, in_run = counters + 1, True
    return counters


@lowers(aten.repeat_interleave.self_int)
def repeat_interleave(call: Call) -> None:
    """[.., n, ..] -> [.., n, 1, ..] -> [.., n, times, ..] -> [.., n * times, ..]"""
    x, times = call.tensor("self"), call["repeats"]
    flat = x if call.has("dim") else call.view(x, [numel(x.shape)])
    at = axis(call["dim"], x.rank) + 1 if call.has("dim") else 1
    apart = call.view(flat, [*flat.shape[:at], 1, *flat.shape[at:]])
    shape = [*flat.shape[:at], times, *flat.shape[at:]]
    call.emit("view", call.emit("expand", apart, shape, out=call.temp(x.dtype, shape)), list(call.out.shape))


def bounds(call: Call) -> tuple[Size, Size, int]:
    """Start, end and step of a slice."""
    return call["start"] if call.has("start") else 0, call["end"] if call.has("end") else END, call["step"]


@lowers(aten.slice.Tensor, aten.slice_copy.Tensor)
def slice_(call: Call) -> None:
    """start:end:step of one dimension."""
    call.emit("slice", call.tensor("self"), call["dim"], *bounds(call))


@lowers(aten.select.int, aten.select_copy.int)
def select(call: Call) -> None:
    """One index of one dimension; the result has no such dimension."""
    x, dim = call.tensor("self"), call["dim"]
    if is_one(x.shape[dim]):
        call.emit("view", x, list(call.out.shape))
    else:
        call.emit("select", x, dim, call["index"])


def _parts(call: Call, x: Ref, dim: int) -> None:
    """Several results, one after the other along `dim`."""
    used, start = used_outputs(call), 0
    for index, out in enumerate(call.outs):
        end = start + out.shape[dim]
        if index in used:
            call.emit("slice", x, dim, sizes.plain(start), sizes.plain(end), 1, out=out)
        start = end


@lowers(*SPLITS)
def split(call: Call) -> None:
    """Consecutive parts along one dimension; only those that are read."""
    x = call.tensor("self")
    _parts(call, x, axis(call["dim"], x.rank))


@lowers(*UNBINDS)
def unbind(call: Call) -> None:
    """All indices of one dimension; only those that are read."""
    x = call.tensor("self")
    used = used_outputs(call)
    for index, out in enumerate(call.outs):
        if index in used:
            call.emit("select", x, call["dim"], index, out=out)


@lowers(aten.flip.default)
def flip(call: Call) -> None:
    """Dimensions in reverse."""
    call.emit("flip", call.tensor("self"), call["dims"])


@lowers(aten.roll.default)
def roll(call: Call) -> None:
    """Each shift swaps the two parts of a dimension; without dims the tensor is rolled as if it were flat."""
    x = call.tensor("self")
    value, dims = x, call["dims"]
    if not dims:
        value, dims = call.view(x, [numel(x.shape)]), [0]
    for shift, dim in zip(call["shifts"], dims, strict=True):
        size = value.shape[dim]
        if isinstance(size, torch.SymInt) or isinstance(shift, torch.SymInt):
            call.refuse("rolling along a dimension, or by a distance, that changes from call to call is not supported")
        at = (size - shift) % size if size else 0
        if at == 0:
            continue
        parts = []
        for begin, end in ((at, size), (0, at)):
            shape = list(value.shape)
            shape[dim] = end - begin
            parts.append(call.emit("slice", value, dim, begin, end, 1, out=call.temp(x.dtype, shape)))
        value = call.emit("cat", parts, dim, out=call.temp(x.dtype, value.shape))
    call.emit("view", value, list(call.out.shape))


def _diagonal(call: Call, x: Ref, offset: int, dims: tuple[int, int], out: Ref | None = None) -> Ref:
    """Of each matrix, rows after one another: every (columns + 1)-th element is one of the diagonal."""
    first, second = (axis(dim, x.rank) for dim in dims)
    rows, columns = x.shape[first], x.shape[second]
    if not (isinstance(rows, int) and isinstance(columns, int)):
        call.refuse("a diagonal of sizes that depend on the inputs is not supported")
    kept = [dim for dim in range(x.rank) if dim not in (first, second)]
    shape = [x.shape[dim] for dim in kept]
    order = [*kept, first, second]
    if order != list(range(x.rank)):
        x = call.emit("permute", x, order, out=call.temp(x.dtype, [*shape, rows, columns]))
    count = max(0, min(rows + min(offset, 0), columns - max(offset, 0)))
    begin = offset if offset >= 0 else -offset * columns
    flat = call.view(x, [*shape, rows * columns])
    end = begin + max(0, (count - 1) * (columns + 1) + 1) if count else 0
    out = call.temp(x.dtype, [*shape, count]) if out is None else out
    return call.emit("slice", flat, len(kept), begin if count else 0, end, columns + 1, out=out)


@lowers(aten.diagonal.default, aten.diagonal_copy.default)
def diagonal(call: Call) -> None:
    """The elements i, i + offset of two dimensions, as the last dimension."""
    _diagonal(call, call.tensor("self"), call["offset"], (call["dim1"], call["dim2"]), call.out)


@lowers(aten.trace.default)
def trace(call: Call) -> None:
    """The sum of the diagonal."""
    call.emit("sum", _diagonal(call, call.tensor("self"), 0, (0, 1)), [0], False)
