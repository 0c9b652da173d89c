# SPDX-License-Identifier: Apache-2.0
"""Takes out of the graph what computes nothing: identities, duplicates, assertions and dead code.

    clone(x) -> x        _to_copy(x, same dtype) -> x        slice(x, 0, 0, whole) -> x        cat([x]) -> x
    two equal nodes -> one

and brings numbers that are read from tensors, ExecuTorch's operators for language models, images whose channels are
last, and rows that are read alone into forms that the lowerings and patterns know (items.py, llama.py,
channels_last.py, needed_rows.py). Nodes stay in the graph, without arguments and users, so that the report can speak of
them. Values are single-assignment here (the graph is functional), so an alias and a copy are the same thing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.fx import Graph, Node

from pumice.lowering.sizes import same_shape
from pumice.passes.channels_last import keep_channels_last
from pumice.passes.items import rewrite_items
from pumice.passes.llama import rewrite_llama
from pumice.passes.needed_rows import compute_needed_rows

aten = torch.ops.aten
SameDtype = Callable[[torch.dtype, torch.dtype], bool]
_ALIASES = {
    aten.alias.default,
    aten.clone.default,
    aten.contiguous.default,
    aten.detach.default,
    aten.lift_fresh_copy.default,
    aten.lift_fresh.default,
}
_RESHAPES = {aten.view.default, aten._unsafe_view.default, aten.reshape.default, aten.expand.default}
_CASTS = {
    aten._to_copy.default,
    aten.to.dtype,
    aten.to.dtype_layout,
    aten.type_as.default,
    aten.to.other,
    aten.to.device,
}


def normalize(program: Any, device_dtype: Callable[[torch.dtype], Any]) -> dict[Node, str]:
    """Rewrites the graph of `program` in place; returns the nodes that are out of it, with what they were."""
    graph, out = program.graph, dict[Node, str]()
    _look_at_strides(graph)
    equal = _equal_on_the_device(graph, device_dtype)
    _merge(graph, equal, out)
    _drop_dead(graph, out)
    rewritten, gone = rewrite_items(graph), rewrite_llama(program)
    rewritten |= keep_channels_last(graph) | compute_needed_rows(graph)
    if rewritten or gone:
        out.update(gone)
        _merge(graph, equal, out)
        _drop_dead(graph, out)
    return out


def _look_at_strides(graph: Graph) -> None:
    """Says of as_strided whether it is one of a contiguous tensor: the copies that make one go out of the graph."""
    for node in graph.nodes:
        if node.target in (aten.as_strided.default, aten.as_strided_copy.default):
            source = node.args[0].meta["val"]
            node.meta["of_contiguous"] = source.is_contiguous() and source.storage_offset() == 0


def _equal_on_the_device(graph: Graph, device_dtype: Callable[[torch.dtype], Any]) -> SameDtype:
    """Whether a conversion from one dtype to another changes nothing. One to bfloat16 rounds, as in eager PyTorch;
    not so in a model that is in bfloat16 itself, which is computed in what that becomes, as the report says."""
    inputs = (node.meta.get("val") for node in graph.nodes if node.op == "placeholder")
    rounds = not any(isinstance(value, torch.Tensor) and value.dtype is torch.bfloat16 for value in inputs)

    def equal(before: torch.dtype, after: torch.dtype) -> bool:
        if before is after or (rounds and after is torch.bfloat16):
            return before is after
        known = device_dtype(before)
        return known is not None and known == device_dtype(after)

    return equal


def _merge(graph: Graph, equal: SameDtype, out: dict[Node, str]) -> None:
    """Takes out identities, and of equal nodes all but the first."""
    seen: dict[Any, Node] = {}
    for node in graph.nodes:
        if node.op != "call_function" or node in out:
            continue
        same = _identity(node, equal)
        why = f"the same as {same.name}" if same is not None else ""
        if same is None and _pure(node):
            same = seen.setdefault(_key(node), node)
            why = f"a duplicate of {same.name}"
        if same is not None and same is not node:
            node.replace_all_uses_with(same)
            out[node] = why
            node.args, node.kwargs = (), {}


def _drop_dead(graph: Graph, out: dict[Node, str]) -> None:
    for node in reversed(graph.nodes):
        if node.op == "call_function" and not node.users and node not in out:
            out[node] = _assertion(node)
            node.args, node.kwargs = (), {}


def _assertion(node: Node) -> str:
    name = str(node.target)
    if "_assert_tensor_metadata" in name:
        return "an assertion, checked at export"
    return (
        "an assertion on sizes or values, not checked when running"
        if "_assert_" in name or "sym_constrain_range" in name
        else ""
    )


def _pure(node: Node) -> bool:
    target = node.target
    return (
        isinstance(target, torch._ops.OpOverload)
        and not target._schema.is_mutable
        and torch.Tag.nondeterministic_seeded not in target.tags
        and "val" in node.meta
    )


def _key(node: Node) -> Any:
    return node.target, _frozen(node.args), _frozen(node.kwargs)


def _frozen(value: Any) -> Any:
    """A hashable form in which 1, 1.0, True and -0.0, 0.0 differ."""
    if isinstance(value, list | tuple):
        return tuple(_frozen(item) for item in value)
    if isinstance(value, dict):
        return tuple((key, _frozen(item)) for key, item in sorted(value.items()))
    return value if isinstance(value, Node) else (type(value).__name__, repr(value))


def _identity(node: Node, equal: SameDtype) -> Node | None:
    """The input that `node` equals, or None."""
    source = node.args[0] if node.args else None
    if node.target is aten.cat.default and len(source) == 1:
        return source[0]
    if not isinstance(source, Node) or not isinstance(source.meta.get("val"), torch.Tensor):
        return None
    before, after = source.meta["val"], node.meta.get("val")
    if not isinstance(after, torch.Tensor):
        return None
    if node.target is aten.copy.default and isinstance(node.args[1], Node):
        # The result has the values of the second argument, in the shape and dtype of the first.
        source, before = node.args[1], node.args[1].meta["val"]
        return source if before.dtype == after.dtype and same_shape(before.shape, after.shape) else None
    if node.target in _ALIASES or (node.target is aten.dropout.default and not node.args[2]):
        return source
    if node.target in _CASTS:
        return source if equal(before.dtype, after.dtype) else None
    if node.target in _RESHAPES:
        # Or what a chain of reshapes began with.
        while not same_shape(source.meta["val"].shape, after.shape):
            if source.target not in _RESHAPES or source.target is aten.expand.default:
                return None
            source = source.args[0]
        return source
    if node.target is aten.slice.Tensor:
        step = node.args[4] if len(node.args) > 4 else 1
        return source if step == 1 and same_shape(before.shape, after.shape) else None
    if node.target is aten.permute.default:
        rank = before.dim()
        return source if [d % rank for d in node.args[1]] == list(range(rank)) else None
    if node.target is aten.add.Tensor and not before.dtype.is_floating_point and not node.kwargs:
        return source if type(node.args[1]) is int and node.args[1] == 0 and before.dtype == after.dtype else None
    return None
