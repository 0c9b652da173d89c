# SPDX-License-Identifier: Apache-2.0
"""pumice::cached_attention (passes/cached_attention.py): new rows go to key and value caches, then attend to them and
to all rows before. See ops/cached_attention.cpp."""

from __future__ import annotations

from dataclasses import dataclass

from pumice.format.ir import DType
from pumice.lowering.call import Call
from pumice.lowering.permuted import look_through
from pumice.lowering.ref import Ref
from pumice.lowering.registry import lowers

TARGETS = ("pumice.cached_attention.default", "pumice.cached_attention_int8.default")
HEADS_FIRST = [0, 2, 1, 3]


@dataclass(frozen=True)
class Rows:
    """Heads side by side: of x [B, L, N], those from element `begin` of each row on."""

    x: Ref
    begin: int = 0


@dataclass(frozen=True)
class Prepared:
    """What is done to queries and keys first: cos and sin, of the new rows [B or 1, L, R] or of all positions
    [S or more, R], rotate their first R elements, of neighbours by R / 2 columns where `interleaved`; norms: weights
    [E], applied before."""

    cos: Ref | None = None
    sin: Ref | None = None
    q_norm: Ref | None = None
    k_norm: Ref | None = None
    eps: float = 0.0
    interleaved: bool = False


@lowers(*TARGETS)
def cached_attention(call: Call) -> None:
    """Caches should be states, mutated buffers: they are then written in place."""
    emit(call, *(rows_of(call, call.tensor(name)) for name in ("query", "key", "value")), Prepared())


def rows_of(call: Call, heads: Ref) -> Rows:
    """[B, H, L, E] as rows [B, L, H * E]: without a copy where it was transposed from that."""
    inner, dims = look_through(call, heads)
    if dims != HEADS_FIRST:
        shape = [heads.shape[dim] for dim in HEADS_FIRST]
        inner = call.emit("permute", heads, HEADS_FIRST, out=call.temp(heads.dtype, shape))
    return as_rows(call, inner)


def as_rows(call: Call, heads: Ref) -> Rows:
    """[B, L, H, E] as rows [B, L, H * E]."""
    return Rows(call.view(heads, [*heads.shape[:2], heads.shape[2] * heads.shape[3]]))


def emit(call: Call, q: Rows, k: Rows, v: Rows, prepared: Prepared) -> None:
    """The operator of the node of `call`, for queries, keys and values in rows."""
    for name in ("query", "key_cache", "value_cache"):
        size = call.tensor(name).shape[-1]
        if not isinstance(size, int) or size % 4 != 0 or size > 256:
            call.refuse(f"attention heads of {size} elements; a multiple of 4 up to 256 is needed")
    dtype = call.tensor("query").dtype
    int8 = call.has("scales")
    rows = DType.i8 if int8 else dtype
    known = {"key": dtype, "value": dtype, "key_cache": rows, "value_cache": rows, "sinks": dtype, "scales": DType.f32}
    for name, wanted in known.items():
        if call.has(name) and call.tensor(name).dtype is not wanted:
            call.refuse(f"attention of {dtype.name} queries with {name} of {call.tensor(name).dtype.name}")
    p = prepared
    factors = (p.cos, p.sin, p.q_norm, p.k_norm, call["sinks"], p.eps)
    begins = (q.begin, k.begin, v.begin)
    options = (call["scale"], call["window"], call["softcap"])
    caches = (call.tensor("key_cache"), call.tensor("value_cache"), call.tensor("first"))
    name = f"cached_attention{'_int8' if int8 else ''}{'_interleaved' if p.interleaved else ''}"
    scales = [call.tensor("scales")] if int8 else []
    call.emit(name, q.x, k.x, v.x, *caches, *factors, call.tensor("query").shape[1], *begins, *options, *scales)
