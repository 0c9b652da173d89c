# SPDX-License-Identifier: Apache-2.0
"""A tensor with a part of it replaced: slice_scatter, select_scatter. In place when the tensor is a state."""

from __future__ import annotations

import torch

from pumice.lowering.call import Call
from pumice.lowering.operands import END, axis
from pumice.lowering.registry import lowers

aten = torch.ops.aten


@lowers(aten.slice_scatter.default)
def slice_scatter(call: Call) -> None:
    x, source = call.tensor("self"), call.tensor("src")
    start = call["start"] if call.has("start") else 0
    end = call["end"] if call.has("end") else END
    call.emit("slice_scatter", x, call.cast(source, x.dtype), call["dim"], start, end, call["step"])


@lowers(aten.select_scatter.default)
def select_scatter(call: Call) -> None:
    x, index = call.tensor("self"), call["index"]
    dim = axis(call["dim"], x.rank)
    source = call.cast(call.tensor("src"), x.dtype)
    source = call.view(source, [*source.shape[:dim], 1, *source.shape[dim:]])
    end = END if isinstance(index, int) and index == -1 else index + 1
    call.emit("slice_scatter", x, source, dim, index, end, 1)
