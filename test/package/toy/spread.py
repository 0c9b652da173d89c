# SPDX-License-Identifier: Apache-2.0
"""spread: the largest less the smallest element of the last dimension, times a number. ops/spread.cpp."""

from __future__ import annotations

from pumice.lowering.call import Call
from pumice.lowering.registry import lowers


@lowers("pumice_toy.spread.default")
def spread(call: Call) -> None:
    x = call.tensor("x")
    if x.rank == 0:
        call.refuse("a tensor without dimensions has no rows")
    call.emit("spread", x, float(call["scale"]))
