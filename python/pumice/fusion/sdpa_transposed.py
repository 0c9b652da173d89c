# SPDX-License-Identifier: Apache-2.0
"""permute(scaled_dot_product_attention(...), [0, 2, 1, 3]) -> sdpa that writes in that order."""

from __future__ import annotations

from collections.abc import Callable

from pumice.fusion import attention_rows
from pumice.lowering.call import Call
from pumice.lowering.permuted import PERMUTES, permutation
from pumice.lowering.registry import fuses
from pumice.ops import sdpa


@fuses(*PERMUTES)
def sdpa_transposed(call: Call) -> Callable[[], None] | None:
    """Matches a permutation that alone reads an attention's result, or rows of it."""
    found = attention_rows.attention_before(call, call.tensor("self"))
    if found is None or permutation(call) != sdpa.SWAPPED:
        return None
    before, rows = found
    return lambda: attention_rows.emit(before, call.out, True, rows)
