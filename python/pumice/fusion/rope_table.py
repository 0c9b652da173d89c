# SPDX-License-Identifier: Apache-2.0
"""Finds the tables of all positions that cos and sin of a rotary position embedding were picked from."""

from __future__ import annotations

import torch

from pumice.lowering.call import Call
from pumice.lowering.operands import is_one
from pumice.lowering.quantized_activation import VIEWS
from pumice.lowering.ref import Ref
from pumice.lowering.sizes import NO_INDEX, same
from pumice.ops.index import counts_all

aten = torch.ops.aten


def table(call: Call, angles: Ref, first: Ref, capacity: int) -> Ref | None:
    """[capacity or more, R], of which `angles` [B, L, R] or [L, R] are the rows first [B] + 0, 1, .. L - 1; None when
    they are something else."""
    rows = _picked(call, angles)
    if rows is None:
        return None
    picked, index = rows
    whole, length = picked.tensor("self"), angles.shape[-2]
    if not (_counts_from(picked, index, first, length) or _is_number(picked, index, first, length)):
        return None
    enough = isinstance(whole.shape[0], int) and whole.shape[0] >= capacity
    return whole if whole.is_constant and whole.rank == 2 and enough else None


def _picked(call: Call, angles: Ref) -> tuple[Call, Ref] | None:
    """What picks rows of a table, and the index."""
    select = call.producer(angles, aten.index_select.default)
    if select is not None:
        return (select, select.tensor("index")) if select["dim"] in (0, -select.tensor("self").rank) else None
    index = call.producer(angles, aten.index.Tensor)
    one = index is not None and len(index["indices"]) == 1 and index["indices"][0] is not None
    return (index, index["indices"][0]) if one else None


def _counts_from(call: Call, index: Ref, first: Ref, length: int | torch.SymInt) -> bool:
    """first [B] + 0, 1, .. as [B, L], or as the [L] that passes/items.py makes for the one number in `first`."""
    add = call.producer(index, aten.add.Tensor)
    if add is None or add["alpha"] != 1 or not isinstance(add["other"], Ref):
        return False
    rows, begin = add.tensor("other"), add.producer(add.tensor("self"), aten.unsqueeze.default)
    if begin is not None and begin["dim"] in (1, -1) and begin.tensor("self").is_same(first):
        return counts_all(rows, length)
    start = add.producer(rows, aten.masked_fill.Scalar)
    if start is None or start["value"] != NO_INDEX or not counts_all(add.tensor("self"), length):
        return False
    return _number(start, start.tensor("self")).is_same(_number(call, first))


def _is_number(call: Call, index: Ref, first: Ref, length: int | torch.SymInt) -> bool:
    """One row, at the one number in `first`."""
    return same(length, 1) and index.rank == 1 and _number(call, index).is_same(_number(call, first))


def _number(call: Call, ref: Ref) -> Ref:
    """The tensor of one number that `ref` has in each element."""
    while (before := call.producer(ref, *VIEWS, aten.expand.default, aten.select.int)) is not None:
        inner = before.tensor("self")
        if not all(is_one(size) for size in inner.shape):
            break
        ref = inner
    return ref
