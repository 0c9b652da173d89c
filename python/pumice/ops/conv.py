# SPDX-License-Identifier: Apache-2.0
"""Convolutions of one and two dimensions, and batch norm with constant statistics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.fusion import convolution
from pumice.lowering.operands import used_outputs
from pumice.lowering.registry import lowers

if TYPE_CHECKING:
    from pumice.lowering.call import Call


@lowers(*convolution.CONVOLUTIONS)
def conv(call: Call) -> None:
    convolution.convolution(call).emit(call.out)


@lowers(*convolution.BATCH_NORMS)
def batch_norm(call: Call) -> None:
    if used_outputs(call) not in ([], [0]):
        call.refuse("the saved statistics of batch_norm are not supported")
    convolution.batch_norm(call).emit(call.out)
