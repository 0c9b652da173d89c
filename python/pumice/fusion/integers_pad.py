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
def padded(made: Call, to: Target) -> Any:
    """By a constant value."""
    if made.target is aten.pad.default and made["mode"] != "constant":
        return None
    if pad.moves_nothing(made):
        return lambda x, out: made.emit("view", x[0], list(out.shape), out=out)
    value = int(to.quantized(torch.tensor(float(made["value"] or 0), dtype=TORCH[made.out.dtype])))
    return lambda x, out: made.emit("pad", x[0], made["pad"], value, out=out)
