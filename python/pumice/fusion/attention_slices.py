# SPDX-License-Identifier: Apache-2.0
"""scaled_dot_product_attention whose queries, keys or values are heads of a larger tensor -> attention that reads them
in place. What is such a tensor is known by the patterns that `finds_slices` registers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pumice.lowering.call import Call
from pumice.lowering.registry import fuses, pattern_name
from pumice.ops import sdpa

# Slices of the queries, keys and values, None for tensors of their own; called when the attention is emitted.
Slices = Callable[[], Sequence[sdpa.Slice | None]]
Finder = Callable[[Call], Slices | None]

_finders: list[tuple[str, Finder]] = []


def finds_slices(finder: Finder) -> Finder:
    """Registers a pattern that looks at an attention and returns None where it does not match."""
    _finders.append((pattern_name(finder), finder))
    return finder


def slices_of(call: Call) -> Slices | None:
    """The slices that the first pattern finds for an attention."""
    found = (finder(call) for name, finder in _finders if not call.is_left_out(name))
    return next((slices for slices in found if slices is not None), None)


@fuses(sdpa.SDPA)
def attention_slices(call: Call) -> Callable[[], None] | None:
    """Matches where one of the patterns does."""
    slices = slices_of(call)
    return None if slices is None else lambda: sdpa.emit(call, call.out, False, slices())
