# SPDX-License-Identifier: Apache-2.0
"""Functions of one tensor that few models need: a row each. The operators are those of ops/unary_math.cpp."""

from __future__ import annotations

import torch

from pumice.format.ir import DType
from pumice.lowering.call import Call
from pumice.lowering.operands import FLOATS
from pumice.lowering.registry import lowers, pointwise
from pumice.ops.unary import lower_function

aten = torch.ops.aten

_FUNCTIONS = {
    aten.acos.default: "acos",
    aten.acosh.default: "acosh",
    aten.asin.default: "asin",
    aten.asinh.default: "asinh",
    aten.atanh.default: "atanh",
    aten.cosh.default: "cosh",
    aten.digamma.default: "digamma",
    aten.erfc.default: "erfc",
    aten.exp2.default: "exp2",
    aten.lgamma.default: "lgamma",
    aten.sinh.default: "sinh",
    aten.tan.default: "tan",
}

pointwise(*_FUNCTIONS)


@lowers(*_FUNCTIONS)
def unary_math(call: Call) -> None:
    """f32 or f16; integers become f32 first."""
    lower_function(call, _FUNCTIONS[call.target])


@lowers(aten.round.decimals)
def round_decimals(call: Call) -> None:
    """round(x * 10^n) / 10^n, or of a negative n round(x / 10^-n) * 10^-n, in f32."""
    x, decimals = call.tensor("self"), call["decimals"]
    if x.dtype not in FLOATS:
        call.refuse(f"rounding {x.dtype.name} to decimals; PyTorch has none of integers either")
    scale, ops = 10.0 ** abs(decimals), ("mul", "div") if decimals >= 0 else ("div", "mul")
    if scale > torch.finfo(torch.float16 if x.dtype is DType.f16 else torch.float32).max:
        call.refuse(f"rounding to {decimals} decimals: 10^{abs(decimals)} is not a number of {x.dtype.name}")
    for op, more in ((ops[0], (scale,)), ("round", ()), (ops[1], (scale,))):
        last = op == ops[1] and call.out.dtype is DType.f32
        x = call.emit(op, call.cast(x, DType.f32), *more, out=call.out if last else call.temp(DType.f32, x.shape))
    if call.out.dtype is not DType.f32:
        call.emit("cast", x, call.out.dtype)
