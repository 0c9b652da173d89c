# SPDX-License-Identifier: Apache-2.0
"""Pooling over one or two dimensions."""

from __future__ import annotations

from typing import Any

import torch

from pumice.lowering.call import Call
from pumice.lowering.operands import argument, is_one, used_outputs
from pumice.lowering.ref import Ref
from pumice.lowering.registry import lowers

aten = torch.ops.aten

MAXIMA = (aten.max_pool2d.default, aten.max_pool2d_with_indices.default, aten.max_pool1d.default)
MEANS = (aten.avg_pool2d.default, aten.avg_pool1d.default)
ADAPTIVE = (
    aten.adaptive_avg_pool2d.default,
    aten._adaptive_avg_pool2d.default,
    aten.adaptive_avg_pool1d.default,
)


def _dims(call: Call) -> int:
    return 1 if "pool1d" in str(call.target) else 2


def _pair(call: Call, sizes: Any, missing: int) -> list[Any]:
    given = list(sizes) if isinstance(sizes, list | tuple) else [sizes]
    given = given * 2 if len(given) == 1 and _dims(call) == 2 else given
    return [missing] * (2 - len(given)) + given


def window(call: Call) -> tuple:
    """kernel, stride, pads, dilation, ceil_mode of a node in MAXIMA or MEANS, as the operators take them."""
    kernel = _pair(call, call["kernel_size"], 1)
    stride = _pair(call, call["stride"], 1) if call["stride"] else kernel
    pads = _pair(call, call["padding"], 0) * 2
    return kernel, stride, pads, _pair(call, argument(call, "dilation", 1), 1), bool(call["ceil_mode"])


def tail(call: Call) -> tuple:
    """What else a mean has: count_padding and the divisor."""
    return bool(call["count_include_pad"]), argument(call, "divisor_override")


def size(call: Call) -> list[Any]:
    """Of a node in ADAPTIVE."""
    return _pair(call, call["output_size"], 1)


def emit(call: Call, op: str, x: Ref, *more: Any, out: Ref | None = None) -> None:
    """Over the last dimension by a dimension of 1 in front of it."""
    out = out or call.out
    if _dims(call) == 2:
        call.emit(op, x, *more, out=out)
        return
    flat = lambda shape: [*shape[:-1], 1, shape[-1]]  # noqa: E731
    pooled = call.emit(op, call.view(x, flat(x.shape)), *more, out=call.temp(out.dtype, flat(out.shape)))
    call.emit("view", pooled, list(out.shape), out=out)


@lowers(*MAXIMA)
def max_pool(call: Call) -> None:
    """The largest element of each window; the indices are refused."""
    if call.target is aten.max_pool2d_with_indices.default and used_outputs(call) != [0]:
        call.refuse("the indices of max_pool2d are not supported")
    emit(call, "max_pool2d", call.tensor("self"), *window(call))


@lowers(*MEANS)
def avg_pool(call: Call) -> None:
    """The mean of each window."""
    emit(call, "avg_pool2d", call.tensor("self"), *window(call), *tail(call))


@lowers(*ADAPTIVE)
def adaptive_avg_pool(call: Call) -> None:
    """Means over as many windows as the result has elements; of one window, a reduction."""
    x, to = call.tensor("self"), size(call)
    if all(is_one(part) for part in to):
        call.emit("mean", x, list(range(x.rank - _dims(call), x.rank)), True)
    else:
        emit(call, "adaptive_avg_pool2d", x, to)
