# SPDX-License-Identifier: Apache-2.0
"""permute(scaled_dot_product_attention(...), [0, 2, 1, 3]) -> sdpa that writes in that order."""

from __future__ import annotations

from collections.abc import Callable

from pumice.fusion.attention_slices import slices_of
from pumice.lowering.call import Call
from pumice.lowering.permuted import PERMUTES, permutation
from pumice.lowering.registry import fuses
from pumice.ops import sdpa


@fuses(*PERMUTES)
def sdpa_transposed(call: Call) -> Callable[[], None] | None:
    """Matches a permutation that alone reads an attention's result."""
    before = call.producer(call.tensor("self"), sdpa.SDPA, single_use=True)
    if before is None or permutation(call) != sdpa.SWAPPED:
        return None
    slices = slices_of(before)
    return lambda: sdpa.emit(before, call.out, True, slices() if slices is not None else ())
