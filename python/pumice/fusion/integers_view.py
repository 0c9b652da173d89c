# SPDX-License-Identifier: Apache-2.0
"""Integers under another shape, and with their dimensions in another order."""

from __future__ import annotations

from typing import Any

from pumice.fusion.integers import Target, moves
from pumice.lowering.call import Call
from pumice.lowering.permuted import PERMUTES, permutation
from pumice.lowering.quantized_activation import VIEWS


@moves(*VIEWS)
def viewed(call: Call, _: Target) -> Any:
    """The same integers in another shape."""
    return lambda x, out: call.emit("view", x[0], list(out.shape), out=out)


@moves(*PERMUTES)
def permuted(call: Call, _: Target) -> Any:
    """Dimensions in another order."""
    return lambda x, out: call.emit("permute", x[0], permutation(call), out=out)
