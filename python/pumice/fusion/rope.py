# SPDX-License-Identifier: Apache-2.0
"""Finds a rotary position embedding: x * cos + cat(-x[R/2:], x[:R/2]) * sin over the first R elements of each head, and
the tables of all positions that cos and sin were picked from."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from pumice.lowering.call import Call
from pumice.lowering.ref import Ref
from pumice.lowering.sizes import same
from pumice.ops.index import counts_all

aten = torch.ops.aten
_SLICES = (aten.slice.Tensor, aten.slice_copy.Tensor)
_END = 2**31  # a slice that ends later ends with the tensor


@dataclass(frozen=True)
class Rotated:
    """x [B, H, L, E]; cos and sin [B or 1, L, R], R <= E."""

    x: Ref
    cos: Ref
    sin: Ref


def rotated(call: Call, ref: Ref) -> Rotated | None:
    """The rotation that made `ref` [B, H, L, E] for the node of `call` alone; None when there is none."""
    cat = call.producer(ref, aten.cat.default, single_use=True)
    if cat is None:
        return _whole(call, ref)
    parts = cat["tensors"]
    if len(parts) != 2 or cat["dim"] not in (-1, ref.rank - 1):
        return None
    whole = _whole(cat, parts[0])
    head, rest = _slice(cat, whole.x) if whole else None, _slice(cat, parts[1])
    if whole is None or head is None or rest is None or not head.x.is_same(rest.x):
        return None
    fits = head.begin == 0 and head.end == rest.begin == whole.cos.shape[-1] and rest.end == head.x.shape[-1]
    return Rotated(head.x, whole.cos, whole.sin) if fits else None


def table(call: Call, angles: Ref, first: Ref, capacity: int) -> Ref | None:
    """[capacity or more, R], of which `angles` [B, L, R] are the rows first [B] + 0, 1, .. L - 1; None when they are
    something else."""
    picked = call.producer(angles, aten.index.Tensor)
    if picked is None or len(picked["indices"]) != 1 or picked["indices"][0] is None:
        return None
    whole = picked.tensor("self")
    add = picked.producer(picked["indices"][0], aten.add.Tensor)
    if add is None or add["alpha"] != 1 or not isinstance(add["other"], Ref):
        return None
    begin = add.producer(add.tensor("self"), aten.unsqueeze.default)
    counts = counts_all(add.tensor("other"), angles.shape[-2])
    if begin is None or begin["dim"] not in (1, -1) or not begin.tensor("self").is_same(first) or not counts:
        return None
    enough = isinstance(whole.shape[0], int) and whole.shape[0] >= capacity
    return whole if whole.is_constant and whole.rank == 2 and enough else None


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
                if own.is_same(x) and None not in angles and same(x.shape[-1], angles[0].shape[-1]):
                    return Rotated(x, *angles)
    return None


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
    """[B or 1, L, R] of cos or sin [B or 1, 1, L, R]."""
    unsqueeze = call.producer(ref, aten.unsqueeze.default)
    if unsqueeze is None or ref.rank != 4 or unsqueeze["dim"] not in (1, -3):
        return None
    return unsqueeze.tensor("self")
