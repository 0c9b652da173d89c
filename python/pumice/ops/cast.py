# SPDX-License-Identifier: Apache-2.0
"""Conversion to another dtype. What changes none is gone before this (passes/normalize.py)."""

from __future__ import annotations

import torch

from pumice.format.ir import DType
from pumice.lowering.call import Call
from pumice.lowering.registry import lowers
from pumice.ops.linear import try_fuse_cast

aten = torch.ops.aten


@lowers(
    aten._to_copy.default,
    aten.to.dtype,
    aten.to.dtype_layout,
    aten.to.device,
    aten.to.other,
    aten.type_as.default,
)
def cast(call: Call) -> None:
    if call.out.dtype is not DType.f16 or not try_fuse_cast(call):
        call.emit("cast", call.tensor("self"), call.out.dtype)
