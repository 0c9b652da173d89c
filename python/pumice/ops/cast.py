# SPDX-License-Identifier: Apache-2.0
"""Conversion to another dtype. What changes none is gone before this (passes/normalize.py)."""

from __future__ import annotations

import torch

from pumice.format.ir import DType
from pumice.lowering.call import Call
from pumice.lowering.registry import lowers

aten = torch.ops.aten


CONVERSIONS = (
    aten._to_copy.default,
    aten.to.dtype,
    aten.to.dtype_layout,
    aten.to.device,
    aten.to.other,
    aten.type_as.default,
)


_HELD_BY_BFLOAT16 = (DType.bool, DType.u8, DType.i8)  # 8 bits


@lowers(*CONVERSIONS)
def cast(call: Call) -> None:
    """To the dtype of the result; devices and memory layouts mean nothing here."""
    x, out = call.tensor("self"), call.out
    if out.torch_dtype is not torch.bfloat16 or x.torch_dtype is torch.bfloat16 or x.dtype in _HELD_BY_BFLOAT16:
        call.emit("cast", x, out.dtype)
        return
    # As f16 on the device, it is rounded in f32 all the same: once.
    rounded = out if out.dtype is DType.f32 else call.temp(DType.f32, x.shape)
    call.emit("round_bfloat16", call.cast(x, DType.f32), out=rounded)
    if rounded is not out:
        call.emit("cast", rounded, out.dtype)
