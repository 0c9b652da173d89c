# SPDX-License-Identifier: Apache-2.0
"""Padding: by one value, or by elements of the tensor."""

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
    """One value at the ends of the last dimensions."""
    _pad(call, call["value"])


def _from_inside(call: Call, mode: str, pads: list[Any]) -> None:
    """By elements of the tensor itself. The operator checks that there are enough of them."""
    if mode == "circular" and any(isinstance(size, int) and size < 0 for size in pads):
        call.refuse("padding mode 'circular' that cuts off is not supported")
    call.emit(f"pad_{mode}", call.tensor("self"), pads)


@lowers(aten.pad.default)
def pad(call: Call) -> None:
    """By one value in mode 'constant', else by elements of the tensor."""
    mode = call["mode"]
    if mode == "constant" or moves_nothing(call):
        _pad(call, call["value"])
    elif mode in ("reflect", "replicate", "circular"):
        _from_inside(call, mode, call["pad"])
    else:
        call.refuse(f"padding mode {mode!r} is not known")


@lowers(aten.reflection_pad1d.default, aten.reflection_pad2d.default, aten.reflection_pad3d.default)
def reflection_pad(call: Call) -> None:
    """Mirrored at the ends of the last dimensions."""
    _from_inside(call, "reflect", call["padding"])


@lowers(aten.replication_pad1d.default, aten.replication_pad2d.default, aten.replication_pad3d.default)
def replication_pad(call: Call) -> None:
    """The first and last elements of the last dimensions."""
    _from_inside(call, "replicate", call["padding"])
