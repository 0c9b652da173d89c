# SPDX-License-Identifier: Apache-2.0
"""Integers of one scale and zero point, joined."""

from __future__ import annotations

from typing import Any

import torch

from pumice.fusion.integers import Target, moves
from pumice.lowering.call import Call
from pumice.lowering.operands import axis

aten = torch.ops.aten


@moves(aten.cat.default)
def joined(call: Call, _: Target) -> Any:
    """The inputs of cat; those of other ranks do not match."""
    rank = call.out.rank
    if any(x.rank != rank for x in call["tensors"]):
        return None
    return lambda x, out: call.emit("cat", x, axis(call["dim"], rank), out=out)
