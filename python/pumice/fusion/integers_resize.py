# SPDX-License-Identifier: Apache-2.0
"""Integer images of another size: nearest ones and shuffled channels as they are, bilinear by q8ta_upsample2d."""

from __future__ import annotations

from typing import Any

import torch

from pumice.fusion.integers import Step, Target, computes, moves
from pumice.lowering.call import Call
from pumice.lowering.quantized_activation import per_tensor
from pumice.ops import upsample2d

aten = torch.ops.aten


@moves(*upsample2d.NEAREST)
def nearest(call: Call, _: Target) -> Any:
    """The nearest integer."""
    factors = upsample2d.factors(call)
    return lambda x, out: call.emit("upsample2d", x[0], list(out.shape[-2:]), *factors, 0, out=out)


@moves(aten.pixel_shuffle.default, aten.pixel_unshuffle.default)
def shuffled(call: Call, _: Target) -> Any:
    """pixel_shuffle and its inverse."""
    return lambda x, out: upsample2d.shuffle(call, x[0], out)


@computes(*upsample2d.BILINEAR)
def bilinear(call: Call, act: str, to: Target) -> Step | None:
    """Interpolated from integers."""
    q = per_tensor(call, upsample2d.image(call)) if act == "none" else None
    if q is None or q.data.dtype is not to.dtype:
        return None
    aligned, last = bool(call["align_corners"]), upsample2d.is_channels_last(call)
    numbers = (*upsample2d.factors(call), aligned, last, float(q.scale), int(q.zero), *to.numbers)
    return lambda out: call.emit("q8ta_upsample2d", q.data, list(out.shape[-2:]), *numbers, out=out)
