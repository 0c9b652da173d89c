# SPDX-License-Identifier: Apache-2.0
"""Computes only those rows that are read in the end, as the first token's of an image classifier, or the last token's
of a language model.

    select(f(x), dim, i)  ->  squeeze(f(slice(x, dim, i, i + 1)), dim)        f: whatever makes each row of its own row

The same of a slice of few rows. All of f is changed where nothing else reads it and a layer or a norm is part of it;
what has other readers is cut. Attention mixes rows: it ends there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx import Graph, Node
from torch.fx.node import map_arg

from pumice.lowering.sizes import plain, same
from pumice.passes.rewrite import Before, arguments, change, value_of

aten = torch.ops.aten
_SELECTS = (aten.select.int, aten.select_copy.int)
_SLICES = (aten.slice.Tensor, aten.slice_copy.Tensor)
_TO_THE_END = 2**63 - 1
_Operands = dict[Node, int | None]  # the dimension of each that has the rows; None: it has none, all rows read it whole


def compute_needed_rows(graph: Graph) -> bool:
    """Rewrites the graph in place; whether anything was changed."""
    changed = False
    for node in list(graph.nodes):
        rows = _rows_of(node)
        changed |= rows is not None and _Cut(rows).run()
    return changed


@dataclass(frozen=True)
class _Rows:
    """Rows begin .. end - 1 of dimension `dim` of `source`, read by `reader`; both count from the end if negative."""

    reader: Node
    source: Node
    dim: int
    begin: int
    end: int


def _rows_of(node: Node) -> _Rows | None:
    """Of a select, or a slice with steps of one, by numbers."""
    if node.target not in (*_SELECTS, *_SLICES) or not node.args:
        return None
    given = arguments(node)
    source, dim = given["self"], given["dim"] % value_of(given["self"]).dim()
    if node.target in _SELECTS:
        begin = given["index"]
        end = begin + 1 if type(begin) is int and begin != -1 else _TO_THE_END
    else:
        begin, end = given["start"] or 0, _TO_THE_END if given["end"] is None else given["end"]
        if given["step"] != 1:
            return None
    known = type(begin) is int and type(end) is int and source.op == "call_function"
    return _Rows(node, source, dim, begin, end) if known and _are_few(node, source, dim) else None


def _are_few(node: Node, source: Node, dim: int) -> bool:
    """Whether they are half of the rows at most: each operand is cut, which is a copy, where one was."""
    count = 1 if node.target in _SELECTS else plain(value_of(node).shape[dim])
    size = plain(value_of(source).shape[dim])
    return isinstance(count, int) and (not isinstance(size, int) or 2 * count <= size)


class _Cut:
    """What is changed for the sake of some rows."""

    def __init__(self, rows: _Rows) -> None:
        self._rows = rows
        self._dims: dict[Node, int] = {}  # of each node of f, the dimension with the rows
        self._made: dict[Node, Node] = {}  # with these rows only

    def run(self) -> bool:
        """Whether anything was changed."""
        self._find()
        if not any(node.target in _LAYERS for node in self._dims):
            return False
        for node in reversed(self._dims):  # found from the end on
            self._made[node] = self._rebuilt(node)
        rows, made = self._rows, self._made[self._rows.source]
        if rows.reader.target in _SELECTS:
            change(rows.reader, aten.squeeze.dim, made, rows.dim)
        else:
            rows.reader.replace_all_uses_with(made)
        return True

    def _find(self) -> None:
        wanted = {self._rows.source: self._rows.dim}
        node = self._rows.reader
        while wanted and (node := node.prev).op not in ("placeholder", "root"):
            dim = wanted.pop(node, None)
            if dim is None or not all(user is self._rows.reader or user in self._dims for user in node.users):
                continue
            operands = _operands(node, dim)
            if operands is None or any(wanted.get(each, at) != at for each, at in operands.items()):
                continue
            self._dims[node] = dim
            wanted |= {each: at for each, at in operands.items() if at is not None}

    def _rebuilt(self, node: Node) -> Node:
        operands = _operands(node, self._dims[node])
        before = Before(node, node)
        given = map_arg((node.args, node.kwargs), lambda each: self._cut(before, each, operands[each]))
        if node.target in _VIEWS:
            sizes = list(given[0][1])
            sizes[self._dims[node]] = value_of(given[0][0]).shape[self._dims[node]]
            return before.call(node.target, given[0][0], sizes)
        return before.call(node.target, *given[0], **given[1])

    def _cut(self, before: Before, node: Node, dim: int | None) -> Node:
        if dim is None:
            return node
        if node not in self._made:
            self._made[node] = before.call(aten.slice.Tensor, node, dim, self._rows.begin, self._rows.end)
        return self._made[node]


def _operands(node: Node, dim: int) -> _Operands | None:
    """Those of a node that makes each row of `dim` of its own row of them; None of any other node."""
    if node.op != "call_function" or not node.args or not isinstance(node.meta.get("val"), torch.Tensor):
        return None
    if node.target in _BY_ROWS:
        return _BY_ROWS[node.target](node, dim)
    pointwise = isinstance(node.target, torch._ops.OpOverload) and torch.Tag.pointwise in node.target.tags
    if not pointwise or torch.Tag.nondeterministic_seeded in node.target.tags or node.target._schema.is_mutable:
        return None
    return _broadcast(node, dim)


def _broadcast(node: Node, dim: int) -> _Operands | None:
    shape, operands = value_of(node).shape, _Operands()
    for each in node.all_input_nodes:
        given = each.meta.get("val")
        if not isinstance(given, torch.Tensor):
            return None
        at = dim - (len(shape) - given.dim())
        if at >= 0 and same(given.shape[at], shape[dim]):
            operands[each] = at
        elif at >= 0 and not same(given.shape[at], 1):
            return None
        else:
            operands[each] = None
    return operands


def _first(node: Node, at: int | None) -> _Operands | None:
    """The first operand has the rows, the others are weights: None where it is one of these, too."""
    others = list[Node]()
    map_arg((node.args[1:], node.kwargs), others.append)
    return None if at is None or node.args[0] in others else {**dict.fromkeys(others), node.args[0]: at}


def _linear(node: Node, dim: int) -> _Operands | None:
    return _first(node, dim if dim < value_of(node).dim() - 1 else None)


def _norm(node: Node, dim: int) -> _Operands | None:
    return _first(node, dim if dim < value_of(node).dim() - len(arguments(node)["normalized_shape"]) else None)


def _mean(node: Node, dim: int) -> _Operands | None:
    """Over dimensions after the rows, as a root mean square has it."""
    given, rank = arguments(node), value_of(node.args[0]).dim()
    return _first(node, dim if given["dim"] and all(dim < each % rank for each in given["dim"]) else None)


def _transpose(node: Node, dim: int) -> _Operands | None:
    dims = list(range(value_of(node).dim()))
    given = arguments(node)
    a, b = (given[name] % len(dims) for name in ("dim0", "dim1"))
    dims[a], dims[b] = dims[b], dims[a]
    return _first(node, dims[dim])


def _permute(node: Node, dim: int) -> _Operands | None:
    return _first(node, arguments(node)["dims"][dim] % value_of(node).dim())


def _view(node: Node, dim: int) -> _Operands | None:
    """One that leaves the dimensions up to `dim` alone."""
    before, after = value_of(node.args[0]).shape, value_of(node).shape
    kept = len(before) > dim and all(same(a, b) for a, b in zip(before[: dim + 1], after[: dim + 1], strict=True))
    return _first(node, dim if kept else None)


_VIEWS = (aten.view.default, aten._unsafe_view.default, aten.reshape.default)
_LAYERS = (aten.linear.default, aten.layer_norm.default, aten.rms_norm.default)
_BY_ROWS: dict[Any, Callable[[Node, int], _Operands | None]] = {
    aten.linear.default: _linear,
    aten.layer_norm.default: _norm,
    aten.rms_norm.default: _norm,
    aten.mean.dim: _mean,
    aten.transpose.int: _transpose,
    aten.permute.default: _permute,
    aten._to_copy.default: _first,
    **dict.fromkeys(_VIEWS, _view),
}
