# SPDX-License-Identifier: Apache-2.0
"""ExecuTorch's operators for language models, llama::update_cache and llama::custom_sdpa -> ours.

    k' = update_cache(k, K, p), v' = update_cache(v, V, p), custom_sdpa(q, K', V', p, causal) -> cached_attention,
        which keeps the caches as [B, G, S, E] where the model has [B, S, G, E]: nobody else reads them
    any other update_cache(x, cache, p) -> index_copy(cache, 1, p + arange(L), x)
    any other custom_sdpa(q, k, v, p)   -> scaled_dot_product_attention with a mask by position

Heads come after rows: q [B, L, H, E], k and v [B, S, G, E], G divides H. Row l of q is at position p + l. Causal: it
sees the positions up to its own; with a mask: what this lets it see; else all up to p + L - 1.
"""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass
from typing import Any

import torch
from torch._higher_order_ops.auto_functionalize import auto_functionalized_v2
from torch.export.graph_signature import InputKind, OutputKind
from torch.fx import Node

import pumice.passes.cached_attention  # noqa: F401 (registers the operator)
from pumice.passes.items import item_tensor, positions
from pumice.passes.rewrite import Before, arguments, change, value_of

aten = torch.ops.aten
_HEADS_FIRST = [0, 2, 1, 3]
_UPDATE = {"value", "start_pos", "_cache_base_index", "_all_bases"}  # of a cache that is a whole buffer
_CASTS = (aten._to_copy.default, aten.to.dtype)


def is_update(node: Node) -> bool:
    """Whether the node is an update_cache in the form without side effects, as torch.export writes it."""
    if node.target is not auto_functionalized_v2 or set(node.kwargs) != _UPDATE:
        return False
    return str(node.args[0]) == "llama.update_cache.default"


def rewrite_llama(program: Any) -> dict[Node, str]:
    """Changes the graph of `program`, in place; returns the nodes that became part of others, with what they were."""
    graph, gone = program.graph, dict[Node, str]()
    states = _states(program)
    for node in list(graph.nodes):
        if str(node.target) == "llama.custom_sdpa.default" and _supported(node):
            caches = [_cache(node, name, states) for name in ("key", "value")]
            if None in caches or not _attends_to_its_own(node, *caches):
                _sdpa(node)
            else:
                _cached(node, *caches, gone)
    for node in list(graph.nodes):
        if node not in gone and is_update(node):
            _index_copy(node, gone)
    return gone


def _states(program: Any) -> dict[Node, Node]:
    """The buffers that the program mutates, each with its new value."""
    signature, results = program.graph_signature, next(n for n in program.graph.nodes if n.op == "output").args[0]
    names = {spec.target: spec.arg.name for spec in signature.input_specs if spec.kind is InputKind.BUFFER}
    inputs = {node.name: node for node in program.graph.nodes if node.op == "placeholder"}
    pairs = zip(signature.output_specs, results, strict=True)
    new = {spec.target: node for spec, node in pairs if spec.kind is OutputKind.BUFFER_MUTATION}
    return {inputs[names[target]]: node for target, node in new.items() if target in names}


def _supported(node: Node) -> bool:
    given = arguments(node)
    fixed = all(isinstance(size, int) for size in value_of(given["key"]).shape)
    known = isinstance(given["start_pos"], int) or item_tensor(given["start_pos"]) is not None
    masked = given["attn_mask"] is not None
    return fixed and known and not given["drpout_p"] and not (masked and given["is_causal"])


@dataclass(frozen=True)
class _Cache:
    """A cache that an attention reads: its state, its update, its new value, and what lies between that and the
    attention."""

    state: Node
    update: Node
    new: Node
    chain: list[Node]


def _cache(sdpa: Node, name: str, states: dict[Node, Node]) -> _Cache | None:
    """The cache that this attention alone reads, when it is a state, as it is or after a cast."""
    node, chain, dims = arguments(sdpa)[name], [], [0, 1, 2, 3]
    while node.target in (aten.permute.default, aten.transpose.int, *_CASTS):
        if node.target not in _CASTS:
            dims = [_order(node)[dim] for dim in dims]
        chain.append(node)
        node = node.args[0]
    update = node.args[0] if node.target is operator.getitem else None
    if update is None or not is_update(update) or node.args[1] != 1 or dims != [0, 1, 2, 3]:
        return None
    state, reader = update.kwargs["_all_bases"][0], (chain or [sdpa])[-1]
    alone = list(state.users) == [update] and all(len(step.users) == 1 for step in chain)
    read = [user for user in node.users if user.op != "output"]
    if not alone or states.get(state) is not node or read != [reader]:
        return None
    return _Cache(state, update, node, chain)


def _order(node: Node) -> list[int]:
    if node.target is aten.permute.default:
        return [dim % 4 for dim in node.args[1]]
    order = [0, 1, 2, 3]
    a, b = (dim % 4 for dim in node.args[1:3])
    order[a], order[b] = b, a
    return order


def _attends_to_its_own(sdpa: Node, key: _Cache, value: _Cache) -> bool:
    """Whether the new rows are written where the queries stand, and the operator takes these heads."""
    given = arguments(sdpa)
    query, dtype = _uncast(given["query"]), value_of(key.state).dtype
    starts = {_start(sdpa), _start(key.update), _start(value.update)}
    sizes = [value_of(cache.state).shape[3] for cache in (key, value)]
    typed = {value_of(node).dtype for node in (query, value.state, *(c.update.kwargs["value"] for c in (key, value)))}
    return bool(
        given["is_causal"] and len(starts) == 1 and typed == {dtype} and all(e % 4 == 0 and e <= 256 for e in sizes)
    )


def _start(node: Node) -> Any:
    """A number, or the tensor that it was read from."""
    start = (node.kwargs if is_update(node) else arguments(node))["start_pos"]
    return item_tensor(start) or start


def _uncast(node: Node) -> Node:
    """The tensor before the casts to fp32 that llama's attention puts in front of this operator."""
    while node.target in (aten.permute.default, aten.transpose.int, *_CASTS):
        node = node.args[0]
    return node


def _narrow(node: Node, dtype: torch.dtype) -> Node:
    """The tensor of this dtype that was cast to `node`, or `node`."""
    source = node.args[0] if node.target in _CASTS else node
    return source if value_of(source).dtype is dtype else node


def _cached(sdpa: Node, key: _Cache, value: _Cache, gone: dict[Node, str]) -> None:
    given = arguments(sdpa)
    before, dtype = Before(sdpa, sdpa), value_of(key.state).dtype
    query = before.cast(_narrow(given["query"], dtype), dtype)
    tensors = [
        before.permute(node, _HEADS_FIRST) for node in (query, *(c.update.kwargs["value"] for c in (key, value)))
    ]
    for cache in (key, value):
        cache.state.meta["order"] = _HEADS_FIRST  # lowering/folding.py
        for node in (cache.state, cache.new):
            node.meta["val"] = before.empty([value_of(node).shape[dim] for dim in _HEADS_FIRST], dtype)
    first = _first(before, _start(sdpa), value_of(query).shape[0])
    scale = given["scale"] or 1 / math.sqrt(value_of(query).shape[3])
    out = before.empty(value_of(sdpa).shape, dtype)
    made = before.add_many(
        torch.ops.pumice.cached_attention.default,
        (*tensors, key.state, value.state, first, float(scale)),
        (out, value_of(key.new), value_of(value.new)),
    )
    for index, cache in enumerate((key, value), 1):
        made.append(cache.new)
        change(cache.new, operator.getitem, made, index)
        for node in (*cache.chain, cache.update):
            gone[node] = f"part of {sdpa.name}"
            node.args, node.kwargs = (), {}
    if value_of(sdpa).dtype is dtype:
        change(sdpa, operator.getitem, made, 0)
    else:
        attended = before.add_many(operator.getitem, (made, 0), out)
        change(sdpa, aten._to_copy.default, attended, dtype=value_of(sdpa).dtype)


def _first(before: Before, start: Any, batch: int) -> Node:
    """[batch], int64: the position of the first new row."""
    if isinstance(start, int):
        return before.add(aten.full.default, [batch], start, shape=[batch], dtype=torch.int64)
    one = before.view(start, [1])
    return one if batch == 1 else before.add(aten.expand.default, one, [batch], shape=[batch], dtype=torch.int64)


def _sdpa(node: Node) -> None:
    given, before = arguments(node), Before(node, node)
    query, start = given["query"], _start(node)
    rows, heads_first = value_of(query).shape[1], [value_of(query).shape[dim] for dim in _HEADS_FIRST]
    tensors = [before.permute(given[name], _HEADS_FIRST) for name in ("query", "key", "value")]
    mask = given["attn_mask"]
    if mask is None:
        at = before.arange(value_of(given["key"]).shape[1])
        last = _positions(before, start, _size(before, query, 1))
        if not given["is_causal"]:
            last = before.add(aten.select.int, last, 0, -1, shape=[], dtype=torch.int64)
        shape = [rows, value_of(at).shape[0]] if given["is_causal"] else [1, value_of(at).shape[0]]
        limit = before.add(aten.unsqueeze.default, last, -1, shape=[*value_of(last).shape, 1], dtype=torch.int64)
        mask = before.add(aten.le.Tensor, before.view(at, [1, shape[1]]), limit, shape=shape, dtype=torch.bool)
    out = before.add(
        aten.scaled_dot_product_attention.default, *tensors, mask, 0.0, False, shape=heads_first,
        dtype=value_of(node).dtype, scale=given["scale"], enable_gqa=True,
    )  # fmt: skip
    change(node, aten.permute.default, out, _HEADS_FIRST)


def _size(before: Before, node: Node, dim: int) -> Any:
    """A size of a tensor as an argument: a number, or a node where it is a symbol."""
    size = value_of(node).shape[dim]
    return size if isinstance(size, int) else before.add_many(aten.sym_size.int, (node, dim), size)


def _positions(before: Before, start: Any, length: Any) -> Node:
    if not isinstance(start, int):
        return positions(before, start, length)
    rows = before.arange(length)
    return before.add(aten.add.Tensor, rows, start, shape=value_of(rows).shape, dtype=torch.int64)


def _index_copy(update: Node, gone: dict[Node, str]) -> None:
    value, cache = update.kwargs["value"], update.kwargs["_all_bases"][0]
    start = _start(update)
    readers = [user for user in update.users if user.args[1] == 1]
    if isinstance(start, Node) and not _is_tensor(start):
        return
    for reader in readers:
        before = Before(update, cache)
        at = _positions(before, start, _size(before, value, 1))
        change(reader, aten.index_copy.default, cache, 1, at, value)
        gone[update] = f"part of {reader.name}"
        update.args, update.kwargs = (), {}


def _is_tensor(node: Node) -> bool:
    return isinstance(node.meta.get("val"), torch.Tensor)
