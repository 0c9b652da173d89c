# SPDX-License-Identifier: Apache-2.0
"""Images of another size: upsampling by the nearest element or bilinear, pixel_shuffle and its inverse."""

from __future__ import annotations

import torch

from pumice.lowering.call import Call
from pumice.lowering.instead import BYTES
from pumice.lowering.operands import FLOATS
from pumice.lowering.ref import Ref
from pumice.lowering.registry import lowers

aten = torch.ops.aten

NEAREST = (aten.upsample_nearest2d.default, aten.upsample_nearest2d.vec)
BILINEAR = (aten.upsample_bilinear2d.default, aten.upsample_bilinear2d.vec)


def factors(call: Call) -> tuple[float | None, float | None]:
    """Given numbers of output elements for each of the input; None: the quotient of the sizes."""
    if str(call.target).endswith(".vec"):
        return tuple(call["scale_factors"] or (None, None))
    return call["scales_h"], call["scales_w"]


def image(call: Call) -> Ref:
    """The input of a node in NEAREST or BILINEAR, [N, C, H, W]."""
    return call.tensor("input" if str(call.target).endswith(".vec") else "self")


def is_channels_last(call: Call) -> bool:
    """Whether PyTorch holds the image so that all channels of a pixel are neighbours."""
    return call.node.args[0].meta["val"].is_contiguous(memory_format=torch.channels_last)


@lowers(*NEAREST)
def nearest(call: Call) -> None:
    """The nearest element."""
    call.emit("upsample2d", image(call), list(call.out.shape[-2:]), *factors(call), 0)


@lowers(*BILINEAR)
def bilinear(call: Call) -> None:
    """Interpolation between the four nearest elements."""
    if image(call).dtype not in FLOATS:
        call.refuse(f"between elements of {image(call).dtype.name}: {BYTES}")
    mode = 2 if call["align_corners"] else 1
    call.emit("upsample2d", image(call), list(call.out.shape[-2:]), *factors(call), mode)


@lowers(aten.pixel_shuffle.default, aten.pixel_unshuffle.default)
def pixel_shuffle(call: Call) -> None:
    """Channels to pixels, or back."""
    shuffle(call, call.tensor("self"), call.out)


def shuffle(call: Call, x: Ref, out: Ref) -> None:
    """The node of `call` with x as its input."""
    *batch, channels, height, width = x.shape
    n = len(batch)
    if call.target is aten.pixel_shuffle.default:
        r = call["upscale_factor"]
        apart, order = [channels // (r * r), r, r, height, width], (0, 3, 1, 4, 2)
    else:
        r = call["downscale_factor"]
        apart, order = [channels, height // r, r, width // r, r], (0, 2, 4, 1, 3)
    split = call.view(x, [*batch, *apart])
    dims = [*range(n), *(n + dim for dim in order)]
    shape = [split.shape[dim] for dim in dims]
    call.emit("view", call.emit("permute", split, dims, out=call.temp(x.dtype, shape)), list(out.shape), out=out)
