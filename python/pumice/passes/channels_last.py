# SPDX-License-Identifier: Apache-2.0
"""Keeps the blocks of ConvNeXt channels-last from one to the next, as their norms and layers have it.

A block is x + permute(f(permute(conv(x)))): from channels first to channels last behind its depthwise convolution, and
back at its end. Sums, and products with a number for each channel, are taken channels-last; the permutation back comes
after them, and that of the next block undoes it:

    x + permute(y, first)            ->  permute(permute(x, last) + y, first)
    permute(conv(x), last)           ->  permute(conv(permute(permute(x, last), first)), last)
    permute(permute(y, first), last) ->  y

first is [0, 3, 1, 2], last [0, 2, 3, 1]. What is left around a convolution is one operator
(fusion/depthwise_channels_last.py). Only what such a convolution or a permutation reads is changed."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch.fx import Graph, Node

from pumice.lowering.sizes import CHANNELS_FIRST, CHANNELS_LAST, same_shape
from pumice.passes.rewrite import Before, arguments, change, value_of

aten = torch.ops.aten
_PERMUTES = (aten.permute.default, aten.permute_copy.default)
_CONVOLUTIONS = (aten.conv2d.default, aten.convolution.default)


def keep_channels_last(graph: Graph) -> bool:
    """Rewrites the graph in place; whether anything was changed."""
    return _ChannelsLast(graph).run()


class _ChannelsLast:
    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._last: dict[Node, Node] = {}  # of nodes that are channels first, the form that is channels last

    def run(self) -> bool:
        changed = False
        for node in list(self._graph.nodes):
            if _is_permute(node, CHANNELS_LAST):
                changed |= self._end(node)
            elif node.target in (aten.add.Tensor, aten.mul.Tensor):
                changed |= self._sink(node)
        return changed

    def _end(self, node: Node) -> bool:
        """A permutation to channels last: undoes one, or reads a convolution that is to be channels-last."""
        source = node.args[0]
        if _is_permute(source, CHANNELS_FIRST):
            node.replace_all_uses_with(source.args[0])
            return True
        if not _is_depthwise(source) or len(source.users) != 1 or _is_permute(source.args[0], CHANNELS_FIRST):
            return False
        last = self._channels_last(source.args[0], source)
        source.replace_input_with(source.args[0], Before(source, source).permute(last, CHANNELS_FIRST))
        return True

    def _sink(self, node: Node) -> bool:
        """A sum or product with what a permutation from channels last made."""
        sides = list(node.args)
        if len(sides) != 2 or node.kwargs or not all(isinstance(side, Node) for side in sides) or sides[0] is sides[1]:
            return False
        moved = [_is_permute(side, CHANNELS_FIRST) for side in sides]
        if not any(moved):
            return False
        shape, dtype = value_of(node).shape, value_of(node).dtype
        forms = [_form(side, value_of(node)) for side in sides]
        if None in forms:
            return False
        free = all(was or form == "channels" for was, form in zip(moved, forms, strict=True))
        if not free and not _is_read_channels_last(node):
            return False
        before = Before(node, node)
        last = [
            self._channels_last(side, node) if form == "image" else before.view(side, shape[1:2])
            for side, form in zip(sides, forms, strict=True)
        ]
        made = before.add(node.target, *last, shape=[shape[dim] for dim in CHANNELS_LAST], dtype=dtype)
        change(node, aten.permute.default, made, CHANNELS_FIRST)
        self._last[node] = made
        return True

    def _channels_last(self, node: Node, reader: Node) -> Node:
        if _is_permute(node, CHANNELS_FIRST):
            return node.args[0]
        if node not in self._last:
            place = node.next  # in front of all readers, of which others may come before this one
            while place.op == "placeholder":
                place = place.next
            self._last[node] = Before(reader, reader, place).permute(node, CHANNELS_LAST)
        return self._last[node]


def _is_permute(node: Node, dims: Sequence[int]) -> bool:
    if node.target not in _PERMUTES or not node.args:  # without arguments: it is out of the graph
        return False
    rank = value_of(node).dim()
    return rank == len(dims) and [dim % rank for dim in node.args[1]] == dims


def _form(side: Node, result: torch.Tensor) -> str | None:
    """Of an operand of a sum: 'image', of the result's shape, 'channels', a number for each, or None."""
    given, shape = value_of(side), result.shape
    if not isinstance(given, torch.Tensor) or given.dtype is not result.dtype or len(shape) != 4:
        return None
    if same_shape(given.shape, shape):
        return "image"
    rows = ([shape[1], 1, 1], [1, shape[1], 1, 1])
    return "channels" if any(same_shape(given.shape, row) for row in rows) else None


def _is_depthwise(node: Node) -> bool:
    """Whether each channel has a window of its own, of a constant weight, in whole vec4 groups of channels."""
    if node.target not in _CONVOLUTIONS or not node.args:
        return False
    given = arguments(node)
    weight = given["weight"]
    if given.get("transposed") or weight.op == "call_function" or value_of(weight).dim() != 4:
        return False
    channels, in_group = value_of(weight).shape[:2]
    return given["groups"] == channels and in_group == 1 and channels % 4 == 0


def _is_read_channels_last(node: Node) -> bool:
    """Whether what reads the node, perhaps after more sums, wants it so."""
    for user in node.users:
        if _is_permute(user, CHANNELS_LAST):
            return True
        if _is_depthwise(user) and any(_is_permute(after, CHANNELS_LAST) for after in user.users):
            return True
        if user.target is aten.add.Tensor and node.target is aten.mul.Tensor and _is_read_channels_last(user):
            return True
    return False
