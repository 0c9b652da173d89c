# SPDX-License-Identifier: Apache-2.0
"""softmax and log_softmax; the kernels work on the last dimension."""

from __future__ import annotations

import torch

from pumice.lowering.call import Call
from pumice.lowering.operands import axis
from pumice.lowering.registry import lowers

aten = torch.ops.aten

_OPS = {
    aten.softmax.int: "softmax",
    aten._softmax.default: "softmax",
    aten.log_softmax.int: "log_softmax",
    aten._log_softmax.default: "log_softmax",
}


@lowers(*_OPS)
def softmax(call: Call) -> None:
    op, dtype = _OPS[call.target], call.out.dtype
    x = call.cast(call.tensor("self"), dtype)
    if x.rank == 0:
        call.emit("view", call.emit(op, call.view(x, [1]), -1, out=call.temp(dtype, [1])), [])
        return
    dim = axis(call["dim"], x.rank)
    if dim == x.rank - 1:
        call.emit(op, x, -1)
        return
    order = list(range(x.rank))
    order[dim], order[-1] = order[-1], order[dim]
    swapped = [x.shape[d] for d in order]
    last = call.emit("permute", x, order, out=call.temp(dtype, swapped))
    call.emit("permute", call.emit(op, last, -1, out=call.temp(dtype, swapped)), order)
