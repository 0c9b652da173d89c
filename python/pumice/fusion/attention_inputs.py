# SPDX-License-Identifier: Apache-2.0
"""cached_attention(rope(norm(linear(x))), rope(norm(linear(x))), linear(x), ..) -> one product for queries, keys and
values, and one operator that norms, rotates, writes the caches and attends.

Each part may be absent. The norm is a root mean square over each head (Qwen3, Gemma3), before or after the transpose.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from pumice.fusion.interleaved_rope import interleaved
from pumice.fusion.layer import layer_of_heads
from pumice.fusion.merged_layers import emit_merged
from pumice.fusion.rms_norm import RmsNorm, rms_norm_made
from pumice.fusion.rope import Rotated, rotated
from pumice.fusion.rope_table import table
from pumice.lowering.call import Call
from pumice.lowering.permuted import look_through
from pumice.lowering.ref import Ref
from pumice.lowering.registry import fuses
from pumice.ops.cached_attention import HEADS_FIRST, TARGETS, Prepared, Rows, as_rows, emit, rows_of

aten = torch.ops.aten


@dataclass(frozen=True)
class _Heads:
    """Queries, keys or values taken apart, from the last step to the first. x: what is left, [B, L, H, E], or
    [B, H, L, E] where no transpose was found."""

    x: Ref
    transposed: bool
    rope: Rotated | None = None
    norm: RmsNorm | None = None


@fuses(*TARGETS)
def attention_inputs(call: Call) -> Callable[[], None]:
    """Matches every cached attention: what it does not find, it leaves as it is."""
    ropes = [_rotated(call, call.tensor(name)) for name in ("query", "key")]
    if not _alike(*ropes):
        ropes = [None, None]
    query, key = (_take_apart(call, name, rope) for name, rope in zip(("query", "key"), ropes, strict=True))
    if query.norm is not None and key.norm is not None and query.norm.eps != key.norm.eps:
        key = _take_apart(call, "key", ropes[1], norms=False)
    value = _take_apart(call, "value", None, norms=False)
    return lambda: emit(call, *_rows(call, [query, key, value]), _prepared(call, query, key))


def _rotated(call: Call, heads: Ref) -> Rotated | None:
    """The rotation that made [B, H, L, E]."""
    found = rotated(call, heads)
    if found is not None and not found.rows_first:
        return found
    inner, dims = look_through(call, heads)
    found = rotated(call, inner) or interleaved(call, inner) if dims == HEADS_FIRST else None
    return found if found is not None and found.rows_first else None


def _alike(a: Rotated | None, b: Rotated | None) -> bool:
    known = a is not None and b is not None and a.interleaved == b.interleaved
    return known and a.cos.is_same(b.cos) and a.sin.is_same(b.sin)


def _take_apart(call: Call, name: str, rope: Rotated | None, norms: bool = True) -> _Heads:
    x = call.tensor(name) if rope is None else rope.x
    norm = _norm(call, x) if norms else None
    x = x if norm is None else norm.x
    inner, dims = (x, HEADS_FIRST) if rope is not None and rope.rows_first else look_through(call, x)
    if dims != HEADS_FIRST:
        return _Heads(x, False, rope, norm)
    if norms and norm is None and (norm := _norm(call, inner)) is not None:
        inner = norm.x
    return _Heads(inner, True, rope, norm)


def _norm(call: Call, ref: Ref) -> RmsNorm | None:
    """The norm that made `ref`. Others may read it, too, as the three uses in a rotation do."""
    norm = rms_norm_made(call, ref)
    return norm if norm is not None and norm.x.dtype is ref.dtype else None


def _prepared(call: Call, query: _Heads, key: _Heads) -> Prepared:
    dtype = query.x.dtype
    rope = query.rope
    cos, sin = (None, None) if rope is None else _angles(call, rope)
    weights = [None if heads.norm is None else heads.norm.weight for heads in (query, key)]
    eps = next((heads.norm.eps for heads in (query, key) if heads.norm is not None), 0.0)
    neighbours = rope is not None and rope.interleaved
    return Prepared(*(ref and call.cast(ref, dtype) for ref in (cos, sin, *weights)), eps, neighbours)


def _angles(call: Call, rope: Rotated) -> list[Ref]:
    """cos and sin; the tables of all positions, where the attention can pick from them itself."""
    angles, capacity = [rope.cos, rope.sin], call.tensor("key_cache").shape[2]
    tables = [table(call, ref, call.tensor("first"), capacity) for ref in angles]
    if None not in tables:
        return tables
    return [call.view(ref, [1, *ref.shape]) for ref in angles] if rope.rows_first else angles


def _rows(call: Call, parts: list[_Heads]) -> list[Rows]:
    layers = [layer_of_heads(call, heads.x) if heads.transposed else None for heads in parts]
    merged = emit_merged(call, [layer and layer.product for layer in layers])
    if merged is None:
        return [as_rows(call, heads.x) if heads.transposed else rows_of(call, heads.x) for heads in parts]
    sizes = [layer.weight.shape[0] for layer in layers]
    return [Rows(merged, sum(sizes[:index])) for index in range(3)]
