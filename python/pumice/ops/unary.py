# SPDX-License-Identifier: Apache-2.0
"""Functions of one tensor, element by element: a row each. The operators are those of ops/unary.cpp."""

from __future__ import annotations

from typing import Any

import torch

from pumice.format.ir import DType
from pumice.lowering.call import Call
from pumice.lowering.registry import lowers, pointwise

aten = torch.ops.aten

# An integer input is converted to the dtype of the result first, as PyTorch does (sqrt of an i64 tensor is f32).
_FUNCTIONS = {
    aten.abs.default: "abs",
    aten.cos.default: "cos",
    aten.erf.default: "erf",
    aten.exp.default: "exp",
    aten.expm1.default: "expm1",
    aten.hardsigmoid.default: "hardsigmoid",
    aten.hardswish.default: "hardswish",
    aten.log.default: "log",
    aten.log10.default: "log10",
    aten.log1p.default: "log1p",
    aten.log2.default: "log2",
    aten.neg.default: "neg",
    aten.reciprocal.default: "reciprocal",
    aten.relu.default: "relu",
    aten.rsqrt.default: "rsqrt",
    aten.sigmoid.default: "sigmoid",
    aten.sign.default: "sign",
    aten.sgn.default: "sign",
    aten.silu.default: "silu",
    aten.sin.default: "sin",
    aten.sqrt.default: "sqrt",
    aten.square.default: "square",
    aten.tanh.default: "tanh",
}
# Integers stay as they are.
_ROUNDING = {
    aten.ceil.default: "ceil",
    aten.floor.default: "floor",
    aten.round.default: "round",
    aten.trunc.default: "trunc",
}


pointwise(*_FUNCTIONS, *_ROUNDING, aten.gelu.default)


def lower_function(call: Call, function: str) -> None:
    """A function of one tensor by the operator `function`. Integers are converted to the result's dtype first."""
    call.emit(function, call.cast(call.tensor("self"), call.out.dtype))


@lowers(*_FUNCTIONS)
def unary(call: Call) -> None:
    """A function of each element, in the dtype of the result."""
    x, function = call.tensor("self"), _FUNCTIONS[call.target]
    if call.out.dtype is DType.i64 and function in ("abs", "neg", "square"):
        _of_int64(call, call.cast(x, DType.i64), function)
    else:
        call.emit(function, call.cast(x, call.out.dtype))


def _of_int64(call: Call, x: Any, function: str) -> None:
    """By operators that notice a result which 32 bits cannot hold."""
    if function == "square":
        call.emit("mul", x, x)
    elif function == "neg":
        call.emit("sub", 0, x, 1.0)
    else:
        call.emit("maximum", x, call.emit("sub", 0, x, 1.0, out=call.temp(DType.i64, x.shape)))


@lowers(*_ROUNDING)
def rounding(call: Call) -> None:
    """Floats are rounded; integers stay as they are."""
    x = call.tensor("self")
    if x.dtype in (DType.f32, DType.f16):
        call.emit(_ROUNDING[call.target], x)
    else:
        call.emit("cast", x, call.out.dtype)


@lowers(aten.gelu.default)
def gelu(call: Call) -> None:
    """By the error function, or by tanh."""
    x, function = call.tensor("self"), "gelu_tanh" if call["approximate"] == "tanh" else "gelu"
    call.emit(function, x)


@lowers(aten.logical_not.default, aten.bitwise_not.default)
def invert(call: Call) -> None:
    """Logical not of bool, bitwise not of integers."""
    x = call.tensor("self")
    if call.out.dtype is DType.bool:
        call.emit("logical_not", call.cast(x, DType.bool))
    else:
        call.emit("bitwise_not", x)
