# SPDX-License-Identifier: Apache-2.0
"""Constant padding."""

from __future__ import annotations

from typing import Any

import torch

from pumice.lowering.call import Call
from pumice.lowering.operands import number
from pumice.lowering.registry import lowers

aten = torch.ops.aten


def moves_nothing(call: Call) -> bool:
    """TensorFlow's padding, computed for each convolution, is often one by nothing."""
    return all(isinstance(size, int) and size == 0 for size in call["pad"])


def _pad(call: Call, value: Any) -> None:
    if moves_nothing(call):
        call.emit("view", call.tensor("self"), list(call.out.shape))
        return
    call.emit("pad", call.tensor("self"), call["pad"], number(call, value or 0, call.out.dtype))


@lowers(aten.constant_pad_nd.default)
def constant_pad_nd(call: Call) -> None:
    _pad(call, call["value"])


@lowers(aten.pad.default)
def pad(call: Call) -> None:
    if call["mode"] != "constant":
        call.refuse(f"padding mode {call['mode']!r} is not supported, 'constant' is")
    _pad(call, call["value"])
