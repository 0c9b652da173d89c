# SPDX-License-Identifier: Apache-2.0
"""Tensors made from sizes alone. With fixed sizes they are constants and never get here."""

from __future__ import annotations

from typing import Any

import torch

from pumice.format.ir import DType
from pumice.lowering.call import Call
from pumice.lowering.operands import argument, number, operand
from pumice.lowering.registry import lowers

aten = torch.ops.aten


def _full(call: Call, value: Any) -> None:
    out = call.out
    if isinstance(value, torch.SymInt):
        call.emit("expand", operand(call, value, out.dtype), list(out.shape))
    else:
        call.emit("full", number(call, value, out.dtype), list(out.shape))


@lowers(aten.full.default, aten.full_like.default, aten.new_full.default)
def full(call: Call) -> None:
    """One value in a shape of fixed or symbolic sizes."""
    _full(call, call["fill_value"])


@lowers(
    aten.zeros.default,
    aten.zeros_like.default,
    aten.new_zeros.default,
    aten.empty.memory_format,
    aten.empty_like.default,
    aten.empty_strided.default,
    aten.new_empty.default,
    aten.new_empty_strided.default,
)
def zeros(call: Call) -> None:
    """`full` with 0, which is as good as anything where any value will do."""
    _full(call, 0)


@lowers(aten.ones.default, aten.ones_like.default, aten.new_ones.default)
def ones(call: Call) -> None:
    """`full` with 1."""
    _full(call, 1)


@lowers(aten.scalar_tensor.default)
def scalar_tensor(call: Call) -> None:
    """A number as a tensor without dimensions."""
    _full(call, call["s"])


@lowers(aten.fill.Scalar)
def fill(call: Call) -> None:
    """The shape of `self` with one value."""
    _full(call, call["value"])


@lowers(aten.arange.default, aten.arange.start, aten.arange.start_step)
def arange(call: Call) -> None:
    """Numbers from start to end by a step."""
    start, step = argument(call, "start", 0), argument(call, "step", 1)
    for value in (start, step):
        if not isinstance(value, torch.SymInt) and int(value) != value:
            call.refuse("arange of a size that changes from call to call needs whole numbers")
    start, step = (value if isinstance(value, torch.SymInt) else int(value) for value in (start, step))
    if call.out.dtype in (DType.i64, DType.i32):
        call.emit("arange", start, step, call.out.shape[0])
    else:
        numbers = call.emit("arange", start, step, call.out.shape[0], out=call.temp(DType.i64, call.out.shape))
        call.emit("cast", numbers, call.out.dtype)
