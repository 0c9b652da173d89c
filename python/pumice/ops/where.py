# SPDX-License-Identifier: Apache-2.0
"""Choosing elementwise by a mask: where, masked_fill."""

from __future__ import annotations

from typing import Any

import torch

from pumice.format.ir import DType
from pumice.lowering.call import Call
from pumice.lowering.operands import operand, unexpanded
from pumice.lowering.ref import Ref
from pumice.lowering.registry import lowers

aten = torch.ops.aten


def _where(call: Call, condition: Ref, a: Any, b: Any) -> None:
    dtype = call.out.dtype
    condition = unexpanded(call, condition, [a, b])
    a = unexpanded(call, a, [condition, b])
    b = unexpanded(call, b, [condition, a])
    call.emit("where", call.cast(condition, DType.bool), operand(call, a, dtype), operand(call, b, dtype))


@lowers(aten.where.self, aten.where.ScalarOther, aten.where.ScalarSelf, aten.where.Scalar)
def where(call: Call) -> None:
    _where(call, call.tensor("condition"), call["self"], call["other"])


@lowers(aten.masked_fill.Scalar, aten.masked_fill.Tensor)
def masked_fill(call: Call) -> None:
    """The mask broadcasts to self, never the other way round."""
    _where(call, call.tensor("mask"), call["value"], call.tensor("self"))
