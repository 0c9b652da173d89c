# SPDX-License-Identifier: Apache-2.0
"""Finds a rotary position embedding: x * cos + cat(-x[R/2:], x[:R/2]) * sin over the first R elements of each head."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from pumice.lowering.call import Call
from pumice.lowering.ref import Ref
from pumice.lowering.sizes import same

aten = torch.ops.aten
_SLICES = (aten.slice.Tensor, aten.slice_copy.Tensor)
_END = 2**31  # a slice that ends later ends with the tensor


@dataclass(frozen=True)
class Rotated:
    """x [B, H, L, E]; cos and sin [B or 1, L, R], R <= E. `rows_first`: x [B, L, H, E]; cos and sin [L, R].
    `interleaved`: neighbours are rotated, cos and sin have R / 2 columns (interleaved_rope.py)."""

    x: Ref
    cos: Ref
    sin: Ref
    rows_first: bool
    interleaved: bool = False


def rotated(call: Call, ref: Ref) -> Rotated | None:
    """The rotation that made `ref`, [B, H, L, E] or [B, L, H, E], for the node of `call` alone; None when there is
    none."""
    cat = call.producer(ref, aten.cat.default, single_use=True)
    if cat is None:
        return _whole(call, ref)
    parts = cat["tensors"]
    if len(parts) != 2 or cat["dim"] not in (-1, ref.rank - 1):
        return None
    whole, rest = _whole(cat, parts[0]), _slice(cat, parts[1])
    if whole is None or rest is None:
        return None
    # ExecuTorch's form adds the rest also where there is none.
    head = _Slice(rest.x, 0, rest.begin) if whole.x.is_same(rest.x) else _slice(cat, whole.x)
    if head is None or not head.x.is_same(rest.x):
        return None
    fits = head.begin == 0 and head.end == rest.begin == whole.cos.shape[-1] and rest.end == head.x.shape[-1]
    return Rotated(head.x, whole.cos, whole.sin, whole.rows_first) if fits else None


def _whole(call: Call, ref: Ref) -> Rotated | None:
    add = call.producer(ref, aten.add.Tensor, single_use=True)
    if add is None or add["alpha"] != 1:
        return None
    terms = [add.producer(add.tensor(name), aten.mul.Tensor, single_use=True) for name in ("self", "other")]
    for plain, turned in (terms, terms[::-1]):
        if plain is None or turned is None:
            continue
        for swapped, sin in _orders(turned):
            x = _turned(turned, swapped)
            for own, cos in _orders(plain) if x is not None else ():
                angles = _angles(plain, cos), _angles(turned, sin)
                if own.is_same(x) and _fit(x, *angles):
                    return Rotated(x, *angles, rows_first=angles[0].rank == 2)
    return None


def _fit(x: Ref, cos: Ref | None, sin: Ref | None) -> bool:
    known = cos is not None and sin is not None and cos.rank == sin.rank
    return known and same(x.shape[-1], cos.shape[-1])


def _orders(mul: Call) -> list[tuple[Ref, Ref]]:
    a, b = mul["self"], mul["other"]
    return [(a, b), (b, a)] if isinstance(a, Ref) and isinstance(b, Ref) else []


def _turned(call: Call, ref: Ref) -> Ref | None:
    """x of cat(-x[R/2:], x[:R/2])."""
    cat = call.producer(ref, aten.cat.default, single_use=True)
    if cat is None or cat["dim"] not in (-1, ref.rank - 1) or len(cat["tensors"]) != 2:
        return None
    negated, low = cat["tensors"]
    neg = cat.producer(negated, aten.neg.default, single_use=True)
    high, low = _slice(neg, neg.tensor("self")) if neg is not None else None, _slice(cat, low)
    if high is None or low is None or not high.x.is_same(low.x):
        return None
    size = high.x.shape[-1]
    whole = isinstance(size, int) and size % 2 == 0
    fits = whole and (low.begin, low.end, high.begin, high.end) == (0, size // 2, size // 2, size)
    return high.x if fits else None


@dataclass(frozen=True)
class _Slice:
    x: Ref
    begin: int
    end: int


def _slice(call: Call, ref: Ref) -> _Slice | None:
    """Of the last dimension, with steps of 1 and fixed ends."""
    node = call.producer(ref, *_SLICES)
    if node is None:
        return None
    x, size = node.tensor("self"), node.tensor("self").shape[-1]
    begin, end = node["start"] or 0, node["end"]
    end = size if end is None or (isinstance(end, int) and end >= _END) else end
    known = all(isinstance(number, int) for number in (begin, end, size))
    if not known or node["step"] != 1 or node["dim"] not in (-1, x.rank - 1):
        return None
    return _Slice(x, begin + size * (begin < 0), min(end + size * (end < 0), size))


def _angles(call: Call, ref: Ref) -> Ref | None:
    """[B or 1, L, R] of cos or sin [B or 1, 1, L, R]; [L, R] of [L, 1, R]."""
    unsqueeze = call.producer(ref, aten.unsqueeze.default)
    if unsqueeze is None or ref.rank not in (3, 4) or unsqueeze["dim"] not in (1, 1 - ref.rank):
        return None
    return unsqueeze.tensor("self")
