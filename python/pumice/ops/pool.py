# SPDX-License-Identifier: Apache-2.0
"""Pooling over one, two or three dimensions: one family of operators, whose windows are lists of so many numbers."""

from __future__ import annotations

import re
from typing import Any

import torch

from pumice.lowering.call import Call
from pumice.lowering.operands import argument, is_one, used_outputs
from pumice.lowering.registry import lowers

aten = torch.ops.aten

MAXIMA = (aten.max_pool1d.default, aten.max_pool2d.default, aten.max_pool3d.default)
WITH_PLACES = (aten.max_pool2d_with_indices.default, aten.max_pool3d_with_indices.default)
MEANS = (aten.avg_pool1d.default, aten.avg_pool2d.default, aten.avg_pool3d.default)
ADAPTIVE = (
    aten.adaptive_avg_pool1d.default,
    aten.adaptive_avg_pool2d.default,
    aten.adaptive_avg_pool3d.default,
    aten._adaptive_avg_pool2d.default,
    aten._adaptive_avg_pool3d.default,
)


def _dims(call: Call) -> int:
    return int(re.search(r"pool(\d)d", str(call.target))[1])


def _numbers(call: Call, sizes: Any) -> list[Any]:
    """One for each dimension, of a list or of one number for all."""
    given = list(sizes) if isinstance(sizes, list | tuple) else [sizes]
    return given * _dims(call) if len(given) == 1 else given


def window(call: Call) -> tuple:
    """kernel, stride, pads, dilation, ceil_mode of a node in MAXIMA, WITH_PLACES or MEANS, as operators take them."""
    kernel = _numbers(call, call["kernel_size"])
    stride = _numbers(call, call["stride"]) if call["stride"] else kernel
    pads = _numbers(call, call["padding"]) * 2
    return kernel, stride, pads, _numbers(call, argument(call, "dilation", 1)), bool(call["ceil_mode"])


def tail(call: Call) -> tuple:
    """What else a mean has: count_padding and the divisor."""
    return bool(call["count_include_pad"]), argument(call, "divisor_override")


def size(call: Call) -> list[Any]:
    """Of a node in ADAPTIVE."""
    return _numbers(call, call["output_size"])


@lowers(*MAXIMA)
def max_pool(call: Call) -> None:
    """The largest element of each window."""
    call.emit("max_pool", call.tensor("self"), *window(call))


@lowers(*WITH_PLACES)
def max_pool_with_places(call: Call) -> None:
    """The same, and where it is in its plane if that is read."""
    if used_outputs(call) == [0]:
        call.emit("max_pool", call.tensor("self"), *window(call), out=call.outs[0])
    else:
        call.emit("max_pool_with_places", call.tensor("self"), *window(call))


@lowers(*MEANS)
def avg_pool(call: Call) -> None:
    """The mean of each window; of one that has the whole of each plane, a reduction."""
    x, (kernel, _, pads, *_), (_, divisor) = call.tensor("self"), window(call), tail(call)
    planes = list(range(x.rank - _dims(call), x.rank))
    covered = all(
        isinstance(x.shape[dim], int) and x.shape[dim] <= size for dim, size in zip(planes, kernel, strict=True)
    )
    if covered and not any(pads) and divisor is None and all(is_one(call.out.shape[dim]) for dim in planes):
        call.emit("mean", x, planes, True)
    else:
        call.emit("avg_pool", x, *window(call), *tail(call))


@lowers(*ADAPTIVE)
def adaptive_avg_pool(call: Call) -> None:
    """Means over as many windows as the result has elements; of one window, a reduction."""
    x, to = call.tensor("self"), size(call)
    if all(is_one(part) for part in to):
        call.emit("mean", x, list(range(x.rank - _dims(call), x.rank)), True)
    else:
        call.emit("adaptive_avg_pool", x, to)
