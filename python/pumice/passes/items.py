# SPDX-License-Identifier: Apache-2.0
"""A number that a model reads from a tensor (`position.item()`) stays a tensor: the device has it, the host does not.

slice(x, dim, item(t), item(t) + n) -> index_select(x, dim, t + arange(n))      add(x, item(t)) -> add(x, t)
select(x, dim, item(t)) -> index_select(x, dim, t)                              scalar_tensor(item(t)) -> t
"""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch.fx import Graph, Node

from pumice.lowering.sizes import NO_INDEX, same
from pumice.passes.rewrite import ITEMS, Before, arguments, change, value_of

aten = torch.ops.aten


def rewrite_items(graph: Graph) -> bool:
    """Changes the operators that read such numbers, in place; says whether there were any.

    A start outside of the tensor, which PyTorch refuses when it runs, fails the run.
    """
    found = False
    for node in graph.nodes:
        if node.op == "call_function" and any(item_tensor(before) for before in node.all_input_nodes):
            change_for = _CHANGES.get(node.target, _operand)
            found = change_for(node) or found
    return found


def item_tensor(value: Any) -> Node | None:
    """The tensor of one integer that `value` was read from; None of any other number or node."""
    if not isinstance(value, Node) or value.target not in ITEMS or not value.args:
        return None
    tensor = value.args[0]
    return tensor if not value_of(tensor).dtype.is_floating_point else None


def read_from_tensors(graph: Graph) -> set[Node]:
    """The numbers that are read from tensors of integers, what is computed from them on the host, and the assertions
    on any of these."""
    numbers = set[Node]()
    for node in graph.nodes:
        makes_tensors = isinstance(node.meta.get("val"), torch.Tensor | list | tuple)
        computed = not makes_tensors and node.op == "call_function" and numbers.intersection(node.all_input_nodes)
        if computed or item_tensor(node) is not None:
            numbers.add(node)
    return numbers


def _slice(node: Node) -> bool:
    given = arguments(node)
    start, end, dim = item_tensor(given["start"]), given["end"], given["dim"]
    if start is None or given["step"] != 1 or not isinstance(end, Node) or end.target is not operator.add:
        return False
    length = next((other for one, other in (end.args, end.args[::-1]) if one is given["start"]), None)
    size = length.meta["val"] if isinstance(length, Node) else length
    if length is None or not same(size, value_of(node).shape[dim]):
        return False
    change(node, aten.index_select.default, given["self"], dim, positions(Before(node, start), start, length))
    return True


def positions(before: Before, start: Node, length: Any) -> Node:
    """[length], int64: start, start + 1, .. for a tensor `start` of one element. Where the start is negative, which
    would count from the end, they are no indices."""
    one, rows = before.view(start, [1]), before.arange(length)
    wrong = before.add(aten.lt.Scalar, one, 0, shape=[1], dtype=torch.bool)
    first = before.add(aten.masked_fill.Scalar, one, wrong, NO_INDEX, shape=[1], dtype=value_of(one).dtype)
    return before.add(aten.add.Tensor, rows, first, shape=value_of(rows).shape, dtype=torch.int64)


def _select(node: Node) -> bool:
    given = arguments(node)
    index = item_tensor(given["index"])
    if index is None:
        return False
    x, dim, before = given["self"], given["dim"] % value_of(given["self"]).dim(), Before(node, index)
    shape = list(value_of(x).shape)
    shape[dim] = 1
    at = before.view(index, [1])
    row = before.add(aten.index_select.default, x, dim, at, shape=shape, dtype=value_of(x).dtype)
    change(node, aten.squeeze.dim, row, dim)
    return True


def _scalar_tensor(node: Node) -> bool:
    item = item_tensor(node.args[0])
    if item is None:
        return False
    change(node, aten._to_copy.default, Before(node, item).view(item, []), dtype=value_of(node).dtype)
    return True


def _operand(node: Node) -> bool:
    """add.Tensor(x, item), lt.Scalar(x, item) and their like: all that take a tensor as `other`."""
    item = item_tensor(node.args[1]) if len(node.args) > 1 else None
    packet = getattr(node.target, "overloadpacket", None)
    if item is None or packet is None or "Tensor" not in packet.overloads():
        return False
    if [argument.name for argument in packet.Tensor._schema.arguments[:2]] != ["self", "other"]:
        return False
    change(node, packet.Tensor, node.args[0], Before(node, item).view(item, []), *node.args[2:], **node.kwargs)
    return True


_CHANGES = {
    aten.slice.Tensor: _slice,
    aten.slice_copy.Tensor: _slice,
    aten.select.int: _select,
    aten.select_copy.int: _select,
    aten.scalar_tensor.default: _scalar_tensor,
}
