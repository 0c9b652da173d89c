# SPDX-License-Identifier: Apache-2.0
"""Looking through permutations: operators that read their inputs by strides need no permuted copy."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from pumice.lowering.call import Call
from pumice.lowering.ref import Ref

aten = torch.ops.aten
PERMUTES = (
    aten.permute.default,
    aten.permute_copy.default,
    aten.transpose.int,
    aten.transpose_copy.int,
    aten.t.default,
    aten.t_copy.default,
)


def permutation(call: Call) -> list[int]:
    """The dims of a node whose target is one of PERMUTES, as aten.permute takes them, from 0 on."""
    rank = call.tensor("self").rank
    dims = list(range(rank))
    if call.target in (aten.t.default, aten.t_copy.default):
        return dims[::-1]
    if call.target in (aten.transpose.int, aten.transpose_copy.int):
        if rank:
            a, b = call["dim0"] % rank, call["dim1"] % rank
            dims[a], dims[b] = b, a
        return dims
    return [dim % rank for dim in call["dims"]]


def look_through(call: Call, ref: Ref) -> tuple[Ref, list[int]]:
    """(inner, dims) with ref = inner.permute(dims); inner is `ref` itself when nothing is permuted."""
    dims = list(range(ref.rank))
    while (before := call.producer(ref, *PERMUTES)) is not None:
        inner = permutation(before)
        dims = [inner[dim] for dim in dims]
        ref = before.tensor("self")
    return ref, dims


def is_identity(dims: Sequence[int]) -> bool:
    return list(dims) == list(range(len(dims)))
