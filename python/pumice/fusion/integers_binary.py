# SPDX-License-Identifier: Apache-2.0
"""Sums and products of integers: q8ta_add, q8ta_mul."""

from __future__ import annotations

import torch

from pumice.fusion.integers import Step, Target, computes, integer_operand
from pumice.lowering.call import Call
from pumice.lowering.operands import ACTIVATIONS

aten = torch.ops.aten
_OPS = {aten.add.Tensor: "q8ta_add", aten.mul.Tensor: "q8ta_mul"}


@computes(*_OPS)
def arithmetic(call: Call, act: str, to: Target) -> Step | None:
    """Both operands are 8-bit integers of the result's dtype."""
    if call.target is aten.add.Tensor and call["alpha"] != 1:
        return None
    a, b = (integer_operand(call, call[name], to) for name in ("self", "other"))
    if a is None or b is None:
        return None
    numbers = (float(a.scale), int(a.zero), float(b.scale), int(b.zero), ACTIVATIONS[act], *to.numbers)
    return lambda out: call.emit(_OPS[call.target], a.data, b.data, *numbers, out=out)
