# SPDX-License-Identifier: Apache-2.0
"""What passes need that put other operators into a graph: new nodes with the tensors they stand for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch._dispatch.python import enable_python_dispatcher
from torch.fx import Node
from torch.fx.node import map_arg

from pumice.lowering.sizes import same_shape

aten = torch.ops.aten
ITEMS = (aten.item.default, aten._local_scalar_dense.default)


def arguments(node: Node) -> dict[str, Any]:
    """The arguments of a call by their names in the schema of its operator, defaults included."""
    given = dict(zip((argument.name for argument in node.target._schema.arguments), node.args, strict=False))
    defaults = {a.name: a.default_value for a in node.target._schema.arguments if a.has_default_value()}
    return {**defaults, **given, **node.kwargs}


def value_of(node: Node) -> torch.Tensor:
    """The example tensor of a node: its shape, perhaps with symbols, and its dtype."""
    return node.meta["val"]


def change(node: Node, target: Any, *args: Any, **kwargs: Any) -> None:
    """Makes `node` the call of another operator with the same result."""
    node.target, node.args, node.kwargs = target, args, kwargs


class Before:
    """Adds nodes in front of `node`, or of `at`; they belong to the same line of the model as `node`."""

    def __init__(self, node: Node, like: Node, at: Node | None = None) -> None:
        self._node = node
        self._like = value_of(like)
        self._at = at or node

    def add(self, target: Any, *args: Any, shape: Sequence[Any], dtype: torch.dtype, **kwargs: Any) -> Node:
        """A call that makes one tensor of this shape and dtype."""
        return self.add_many(target, args, self.empty(shape, dtype), **kwargs)

    def add_many(self, target: Any, args: tuple[Any, ...], values: Any, **kwargs: Any) -> Node:
        """A call that makes `values`, of `empty`: a tensor or a tuple of them."""
        graph = self._node.graph
        with graph.inserting_before(self._at):
            made = graph.call_function(target, args, kwargs)
        made.meta = {key: value for key, value in self._node.meta.items() if key not in ("val", "tensor_meta")}
        made.meta |= {"val": values, "stands_for": self._node}
        return made

    def call(self, target: Any, *args: Any, **kwargs: Any) -> Node:
        """A call whose result torch finds, from the example tensors of its arguments; raises what torch does."""
        mode = self._like.fake_mode
        given = map_arg((args, kwargs), lambda node: node.meta["val"])
        # Without the dispatcher, torch 2.11 computes linear by operators that want numbers as sizes.
        with mode, enable_python_dispatcher():
            values = target(*given[0], **given[1])
        return self.add_many(target, args, values, **kwargs)

    def empty(self, shape: Sequence[Any], dtype: torch.dtype) -> torch.Tensor:
        """An example tensor without values."""
        return self._like.new_empty(list(shape), dtype=dtype)

    def view(self, node: Node, shape: Sequence[Any]) -> Node:
        """The same elements under another shape, of numbers."""
        if same_shape(value_of(node).shape, shape):
            return node
        return self.add(aten.view.default, node, list(shape), shape=shape, dtype=value_of(node).dtype)

    def permute(self, node: Node, dims: Sequence[int]) -> Node:
        """The dimensions in another order."""
        shape = [value_of(node).shape[dim] for dim in dims]
        return self.add(aten.permute.default, node, list(dims), shape=shape, dtype=value_of(node).dtype)

    def cast(self, node: Node, dtype: torch.dtype) -> Node:
        """The tensor in another dtype."""
        if value_of(node).dtype is dtype:
            return node
        return self.add_many(aten._to_copy.default, (node,), self.empty(value_of(node).shape, dtype), dtype=dtype)

    def arange(self, size: Any) -> Node:
        """0, 1, .. size - 1; `size` is a number or the node of one."""
        length = size.meta["val"] if isinstance(size, Node) else size
        return self.add(aten.arange.start_step, 0, size, shape=[length], dtype=torch.int64)
