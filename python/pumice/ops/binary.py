# SPDX-License-Identifier: Apache-2.0
"""Elementwise operators of two operands, either of which may be a number: arithmetic, comparisons, logic."""

from __future__ import annotations

from typing import Any

import torch

from pumice.format.ir import DType
from pumice.lowering.call import Call
from pumice.lowering.operands import FLOATS, number, operand, unexpanded
from pumice.lowering.registry import lowers, pointwise

aten = torch.ops.aten

_ARITHMETIC = {
    aten.mul.Tensor: "mul",
    aten.mul.Scalar: "mul",
    aten.div.Tensor: "div",
    aten.div.Scalar: "div",
    aten.true_divide.Tensor: "div",
    aten.floor_divide.default: "div_floor",
    aten.floor_divide.Scalar: "div_floor",
    aten.remainder.Tensor: "remainder",
    aten.remainder.Scalar: "remainder",
    aten.remainder.Scalar_Tensor: "remainder",
    aten.fmod.Tensor: "fmod",
    aten.fmod.Scalar: "fmod",
    aten.maximum.default: "maximum",
    aten.minimum.default: "minimum",
    aten.max.other: "maximum",
    aten.min.other: "minimum",
    aten.atan2.default: "atan2",
    aten.bitwise_and.Tensor: "bitwise_and",
    aten.bitwise_and.Scalar: "bitwise_and",
    aten.bitwise_and.Scalar_Tensor: "bitwise_and",
    aten.bitwise_or.Tensor: "bitwise_or",
    aten.bitwise_or.Scalar: "bitwise_or",
    aten.bitwise_or.Scalar_Tensor: "bitwise_or",
    aten.bitwise_xor.Tensor: "bitwise_xor",
    aten.bitwise_xor.Scalar: "bitwise_xor",
    aten.bitwise_xor.Scalar_Tensor: "bitwise_xor",
}
_COMPARISON = {
    getattr(getattr(aten, name), overload): name
    for name in ("eq", "ne", "lt", "le", "gt", "ge")
    for overload in ("Tensor", "Scalar")
}
_LOGICAL = {
    aten.logical_and.default: "logical_and",
    aten.logical_or.default: "logical_or",
    aten.logical_xor.default: "logical_xor",
}

# With a number as the other operand.
pointwise(
    aten.add.Tensor, aten.add.Scalar, aten.sub.Tensor, aten.sub.Scalar, aten.mul.Tensor, aten.mul.Scalar,
    aten.div.Tensor, aten.div.Scalar, aten.pow.Tensor_Scalar, aten.leaky_relu.default, aten.elu.default,
)  # fmt: skip


def pair(call: Call) -> tuple[Any, Any]:
    """Both operands; one that only broadcasting needs expanded is taken as it was before."""
    a, b = call["self"], call["other"]
    a = unexpanded(call, a, [b])
    return a, unexpanded(call, b, [a])


def _arithmetic(call: Call, op: str, a: Any, b: Any, *more: Any) -> None:
    """The result's dtype is the one to compute in: torch has promoted already."""
    dtype = call.out.dtype
    call.emit(op, operand(call, a, dtype), operand(call, b, dtype), *more)


@lowers(*_ARITHMETIC)
def arithmetic(call: Call) -> None:
    """Operators whose operands are converted to the dtype of the result."""
    _arithmetic(call, _ARITHMETIC[call.target], *pair(call))


def _alpha(call: Call) -> Any:
    """What the second operand is multiplied by, as a number of the result's dtype; of bytes -3 is 253."""
    alpha, dtype = call["alpha"], call.out.dtype
    if isinstance(alpha, torch.SymInt):
        return alpha
    return number(call, alpha % 256 if dtype is DType.u8 and -256 < alpha < 0 else alpha, dtype)


@lowers(aten.add.Tensor, aten.add.Scalar)
def add(call: Call) -> None:
    """self + alpha * other"""
    _arithmetic(call, "add", *pair(call), _alpha(call))


@lowers(aten.sub.Tensor, aten.sub.Scalar)
def sub(call: Call) -> None:
    """self - alpha * other"""
    _arithmetic(call, "sub", *pair(call), _alpha(call))


@lowers(aten.rsub.Tensor, aten.rsub.Scalar)
def rsub(call: Call) -> None:
    """other - alpha * self"""
    a, b = pair(call)
    _arithmetic(call, "sub", b, a, _alpha(call))


@lowers(aten.div.Tensor_mode, aten.div.Scalar_mode)
def div_mode(call: Call) -> None:
    """A quotient, exact, rounded down or towards zero."""
    op = {None: "div", "floor": "div_floor", "trunc": "div_trunc"}.get(call["rounding_mode"])
    if op is None:
        call.refuse(f"rounding_mode {call['rounding_mode']!r} is not known")
    _arithmetic(call, op, *pair(call))


@lowers(aten.pow.Tensor_Tensor, aten.pow.Tensor_Scalar, aten.pow.Scalar)
def power(call: Call) -> None:
    """self ** exponent; squares are products."""
    base, exponent = call["self"], call["exponent"]
    if isinstance(exponent, int | float) and exponent == 2:
        return _arithmetic(call, "mul", base, base)
    return _arithmetic(call, "pow", base, exponent)


@lowers(aten.prelu.default, aten._prelu_kernel.default)
def prelu(call: Call) -> None:
    """x where it is positive, else weight * x, with a weight for all or for each channel."""
    x, weight = call.tensor("self"), call.tensor("weight")
    if weight.rank == 1 and x.rank != 1:  # of dimension 1
        weight = call.view(weight, [*weight.shape, *[1] * (x.rank - 2)] if x.rank else [])
    _arithmetic(call, "prelu", x, weight)


@lowers(aten.leaky_relu.default)
def leaky_relu(call: Call) -> None:
    """prelu with a number as its weight."""
    _arithmetic(call, "prelu", call.tensor("self"), call["negative_slope"])


@lowers(aten.elu.default)
def elu(call: Call) -> None:
    """scale * (x where it is positive, else alpha * (exp(x) - 1))"""
    if call["input_scale"] != 1:
        call.refuse(f"elu with input_scale {call['input_scale']}")
    x, alpha, scale = call.tensor("self"), float(call["alpha"]), float(call["scale"])
    if scale == 1:
        call.emit("elu", x, alpha)
        return
    # Rounded to fp16 once, as in PyTorch.
    f32 = call.cast(x, DType.f32)
    scaled = call.out if x.dtype is DType.f32 else call.temp(DType.f32, x.shape)
    call.emit("mul", call.emit("elu", f32, alpha, out=call.temp(DType.f32, x.shape)), scale, out=scaled)
    if x.dtype is not DType.f32:
        call.emit("cast", scaled, x.dtype)


@lowers(aten.isnan.default)
def isnan(call: Call) -> None:
    """NaN is what differs from itself."""
    x = call.tensor("self")
    call.emit("ne", x, x)


@lowers(aten.isinf.default)
def isinf(call: Call) -> None:
    """Whether the magnitude is infinite; no integer is."""
    x = call.tensor("self")
    if x.dtype in FLOATS:
        call.emit("eq", call.emit("abs", x, out=call.temp(x.dtype, x.shape)), float("inf"))
    else:
        call.emit("ne", x, x)


@lowers(*_COMPARISON, *_LOGICAL)
def comparison(call: Call) -> None:
    """Comparisons and logic, in the dtype that torch promotes the operands to; the result is bool."""
    op = _COMPARISON.get(call.target) or _LOGICAL[call.target]
    a, b = pair(call)
    sample = [0 if isinstance(side, torch.SymInt) else side for side in (a, b)]
    dtype = call.promote(*sample)
    call.emit(op, operand(call, a, dtype), operand(call, b, dtype))
