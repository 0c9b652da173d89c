# SPDX-License-Identifier: Apache-2.0
"""Conversion to another dtype. What changes none is gone before this (passes/normalize.py)."""

from __future__ import annotations

import torch

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


@lowers(*CONVERSIONS)
def cast(call: Call) -> None:
    """To the dtype of the result; devices and memory layouts mean nothing here."""
    call.emit("cast", call.tensor("self"), call.out.dtype)
