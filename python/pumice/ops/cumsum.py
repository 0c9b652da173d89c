# SPDX-License-Identifier: Apache-2.0
"""Running sums."""

from __future__ import annotations

import torch

from pumice.format.ir import DType
from pumice.lowering.call import Call
from pumice.lowering.registry import lowers

aten = torch.ops.aten


@lowers(aten.cumsum.default)
def cumsum(call: Call) -> None:
    x, dtype = call.tensor("self"), call.out.dtype
    if dtype is DType.f16:  # summed in f32, as PyTorch does
        sums = call.emit("cumsum", call.cast(x, DType.f32), call["dim"], out=call.temp(DType.f32, x.shape))
        call.emit("cast", sums, dtype)
    else:
        call.emit("cumsum", call.cast(x, dtype), call["dim"])
