# SPDX-License-Identifier: Apache-2.0
"""Integers padded by the integer that stands for the value."""

from __future__ import annotations

from typing import Any

import torch

from pumice.format.dtypes import TORCH
from pumice.fusion.integers import Target, moves
from pumice.lowering.call import Call
from pumice.ops import pad
from pumice.ops.conv2d import PADS

aten = torch.ops.aten


@moves(*PADS)
def padded(call: Call, to: Target) -> Any:
    """By a constant value."""
    if call.target is aten.pad.default and call["mode"] != "constant":
        return None
    if pad.moves_nothing(call):
        return lambda x, out: call.emit("view", x[0], list(out.shape), out=out)
    value = int(to.quantized(torch.tensor(float(call["value"] or 0), dtype=TORCH[call.out.dtype])))
    return lambda x, out: call.emit("pad", x[0], call["pad"], value, out=out)
