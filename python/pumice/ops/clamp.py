# SPDX-License-Identifier: Apache-2.0
"""clamp with numbers as bounds; with tensors or sizes of the inputs as bounds it is maximum and minimum."""

from __future__ import annotations

from typing import Any

import torch

from pumice.format.ir import DType
from pumice.lowering.call import Call
from pumice.lowering.operands import argument, broadcast, operand, shape_of
from pumice.lowering.registry import lowers, pointwise
from pumice.lowering.sizes import INT_MAX

aten = torch.ops.aten

CLAMPS = (
    aten.clamp.default,
    aten.clamp_min.default,
    aten.clamp_max.default,
    aten.hardtanh.default,
    aten.relu6.default,
)


def _clamp(call: Call, low: Any, high: Any) -> None:
    dtype = call.out.dtype
    if dtype is DType.bool:
        call.refuse("clamp of bool tensors is not supported")
    if any(isinstance(bound, torch.SymInt | torch.SymFloat) for bound in (low, high)):
        if dtype in (DType.u8, DType.i8):
            call.refuse(f"a bound that depends on the sizes of the inputs may not fit {dtype.name}")
        _by_steps(call, low, high)
        return
    for bound in (low, high):
        if dtype not in (DType.f32, DType.f16) and isinstance(bound, float) and not bound.is_integer():
            call.refuse(f"the bound {bound} of an integer tensor is not an integer")
    if dtype is DType.i64 and ((low is not None and low > INT_MAX) or (high is not None and high < -INT_MAX - 1)):
        call.refuse(f"the bound {low if high is None else high} leaves the 32 bits that int64 has on the device")
    call.emit("clamp", call.cast(call.tensor("self"), dtype), low, high)


def bounds(call: Call) -> tuple[Any, Any]:
    """The smallest and the largest result of a node in CLAMPS: numbers, sizes of the inputs, or None."""
    if call.target is aten.relu6.default:
        return 0, 6
    low, high = ("min_val", "max_val") if call.target is aten.hardtanh.default else ("min", "max")
    return argument(call, low), argument(call, high)


@lowers(*CLAMPS)
def clamp(call: Call) -> None:
    _clamp(call, *bounds(call))


pointwise(*CLAMPS)


@lowers(aten.clamp.Tensor, aten.clamp_min.Tensor, aten.clamp_max.Tensor)
def clamp_tensor(call: Call) -> None:
    _by_steps(call, argument(call, "min"), argument(call, "max"))


def _by_steps(call: Call, low: Any, high: Any) -> None:
    dtype = call.out.dtype
    bounds = [(op, bound) for op, bound in (("maximum", low), ("minimum", high)) if bound is not None]
    steps = [(op, operand(call, bound, dtype)) for op, bound in bounds]
    value = call.cast(call.tensor("self"), dtype)
    for op, bound in steps[:-1]:
        value = call.emit(op, value, bound, out=call.temp(dtype, broadcast(value.shape, shape_of(bound))))
    op, bound = steps[-1]
    call.emit(op, value, bound)
