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
def joined(made: Call, _: Target) -> Any:
    rank = made.out.rank
    if any(x.rank != rank for x in made["tensors"]):
        return None
    return lambda x, out: made.emit("cat", x, axis(made["dim"], rank), out=out)
