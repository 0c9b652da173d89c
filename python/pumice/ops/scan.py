# SPDX-License-Identifier: Apache-2.0
"""Running sums, products, extrema and log(sum(exp))."""

from __future__ import annotations

import torch

from pumice.format.ir import DType
from pumice.lowering.call import Call
from pumice.lowering.registry import lowers

aten = torch.ops.aten

_WIDER = {DType.f16: DType.f32, DType.u8: DType.i32, DType.i8: DType.i32, DType.bool: DType.i32}


def _scan(call: Call, op: str) -> None:
    """In f32 or 32-bit integers; narrower results are rounded, or wrap, once."""
    x, out = call.tensor("self"), call.out
    dtype = _WIDER.get(out.dtype, out.dtype)
    values = out if dtype is out.dtype else call.temp(dtype, x.shape)
    call.emit(op, call.cast(x, dtype), call["dim"], out=[values, *call.outs[1:]])
    if values is not out:
        call.emit("cast", values, out.dtype, out=out)


@lowers(aten.cumsum.default)
def cumsum(call: Call) -> None:
    """Sums of all elements up to each along one dimension."""
    _scan(call, "cumsum")


@lowers(aten.cumprod.default)
def cumprod(call: Call) -> None:
    """Products of all elements up to each along one dimension."""
    _scan(call, "cumprod")


@lowers(aten.cummax.default)
def cummax(call: Call) -> None:
    """The largest so far and the place of the last of equal ones."""
    _scan(call, "cummax")


@lowers(aten.cummin.default)
def cummin(call: Call) -> None:
    """The smallest so far, likewise."""
    _scan(call, "cummin")


@lowers(aten.logcumsumexp.default)
def logcumsumexp(call: Call) -> None:
    """The logarithm of the sum of all exponentials so far."""
    _scan(call, "logcumsumexp")
