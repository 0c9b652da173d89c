# SPDX-License-Identifier: Apache-2.0
"""Integers under another shape, and with their dimensions in another order."""

from __future__ import annotations

from typing import Any

from pumice.fusion.integers import Target, moves
from pumice.lowering.call import Call
from pumice.lowering.permuted import PERMUTES, permutation
from pumice.lowering.quantized_activation import VIEWS


@moves(*VIEWS)
def viewed(made: Call, _: Target) -> Any:
    return lambda x, out: made.emit("view", x[0], list(out.shape), out=out)


@moves(*PERMUTES)
def permuted(made: Call, _: Target) -> Any:
    return lambda x, out: made.emit("permute", x[0], permutation(made), out=out)
