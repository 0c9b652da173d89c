# SPDX-License-Identifier: Apache-2.0
"""slice(scaled_dot_product_attention(q, k, v), rows) -> attention of those rows of q: each row of queries has a result
of its own. Such a slice is what pumice.passes.needed_rows leaves of a classifier, which reads one token."""

from __future__ import annotations

from collections.abc import Callable

from pumice.fusion.attention_slices import slices_of
from pumice.lowering.call import Call
from pumice.lowering.ref import Ref
from pumice.lowering.registry import fuses
from pumice.ops import copy, sdpa

_SLICE = sdpa.aten.slice.Tensor


@fuses(_SLICE)
def attention_rows(call: Call) -> Callable[[], None] | None:
    """Matches a slice of rows that alone reads an attention. Causal: a row's place says what it sees."""
    before = _attention_of(call)
    return None if before is None else lambda: emit(before, call.out, False, call)


def attention_before(call: Call, ref: Ref) -> tuple[Call, Call | None] | None:
    """The attention that makes `ref`, which nothing else reads, and the slice of its rows between them, if any."""
    if (made := call.producer(ref, sdpa.SDPA, single_use=True)) is not None:
        return made, None
    rows = call.producer(ref, _SLICE, single_use=True)
    before = None if rows is None or call.is_left_out("attention_rows") else _attention_of(rows)
    return None if before is None else (before, rows)


def emit(before: Call, out: Ref, out_swapped: bool, rows: Call | None) -> None:
    """The attention `before` into `out`, of the rows that the slice `rows` takes, or of all; see sdpa.emit."""
    slices = slices_of(before)
    of_queries = None if rows is None else copy.bounds(rows)
    sdpa.emit(before, out, out_swapped, slices() if slices is not None else (), of_queries)


def _attention_of(rows: Call) -> Call | None:
    before = rows.producer(rows.tensor("self"), sdpa.SDPA, single_use=True)
    if before is None or rows.out.rank != 4 or rows["dim"] % 4 != 2 or before["is_causal"]:
        return None
    return before
