# SPDX-License-Identifier: Apache-2.0
"""Joining tensors: cat, stack."""

from __future__ import annotations

import torch

from pumice.lowering.call import Call
from pumice.lowering.operands import axis
from pumice.lowering.ref import Ref
from pumice.lowering.registry import lowers

aten = torch.ops.aten


def _join(call: Call, inputs: list[Ref], dim: int) -> None:
    if len(inputs) == 1:
        call.emit("view", inputs[0], list(call.out.shape))
    else:
        call.emit("cat", inputs, dim)


def _is_nothing(x: Ref) -> bool:
    return x.rank == 1 and isinstance(x.shape[0], int) and x.shape[0] == 0


@lowers(aten.cat.default)
def cat(call: Call) -> None:
    """PyTorch ignores inputs of shape [0], also where the others have another rank."""
    rank = call.out.rank
    inputs = [call.cast(x, call.out.dtype) for x in call["tensors"] if rank == 1 or not _is_nothing(x)]
    if any(x.rank != rank for x in inputs):
        call.refuse("the inputs have different ranks")
    _join(call, inputs, axis(call["dim"], rank))


@lowers(aten.stack.default)
def stack(call: Call) -> None:
    """Tensors of one shape along a new dimension."""
    rank = call.out.rank
    dim = axis(call["dim"], rank)
    inputs = [call.cast(x, call.out.dtype) for x in call["tensors"]]
    _join(call, [call.view(x, [*x.shape[:dim], 1, *x.shape[dim:]]) for x in inputs], dim)
