# SPDX-License-Identifier: Apache-2.0
"""Convolutions of one and two dimensions, and batch norm with constant statistics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice import convolution
from pumice.op import lowers
from pumice.operands import used_outputs

if TYPE_CHECKING:
    from pumice.lower import Call


@lowers(*convolution.CONVOLUTIONS)
def conv(call: Call) -> None:
    convolution.convolution(call).emit(call.out)


@lowers(*convolution.BATCH_NORMS)
def batch_norm(call: Call) -> None:
    if used_outputs(call) not in ([], [0]):
        call.refuse("the saved statistics of batch_norm are not supported")
    convolution.batch_norm(call).emit(call.out)
