# SPDX-License-Identifier: Apache-2.0
"""Functions of two operands that few models need: a row each. The operators are those of ops/binary_math.cpp."""

from __future__ import annotations

import torch

from pumice.lowering.call import Call
from pumice.lowering.operands import FLOATS, operand
from pumice.lowering.registry import lowers
from pumice.ops.binary import pair

aten = torch.ops.aten

_FUNCTIONS = {
    aten.copysign.Scalar: "copysign",
    aten.copysign.Tensor: "copysign",
    aten.fmax.default: "fmax",
    aten.fmin.default: "fmin",
    aten.hypot.default: "hypot",
    aten.logaddexp.default: "logaddexp",
    aten.logaddexp2.default: "logaddexp2",
    aten.nextafter.default: "nextafter",
}
_OF_INTEGERS = {"fmax": "maximum", "fmin": "minimum"}  # which have no NaN


@lowers(*_FUNCTIONS)
def binary_math(call: Call) -> None:
    """In the dtype of the result, f32 or f16."""
    op, dtype = _FUNCTIONS[call.target], call.out.dtype
    if dtype not in FLOATS:
        op = _OF_INTEGERS[op]
    a, b = pair(call)
    call.emit(op, operand(call, a, dtype), operand(call, b, dtype))
