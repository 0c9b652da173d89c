# SPDX-License-Identifier: Apache-2.0
"""Convolutions of three dimensions: the slices that meet the taps along the depth become channels of one image, and
conv2d sums over all of them."""

from __future__ import annotations

import torch

from pumice.lowering.call import Call
from pumice.lowering.quantized import quantized
from pumice.lowering.ref import Ref
from pumice.lowering.registry import lowers
from pumice.lowering.sizes import plain
from pumice.lowering.windows import is_transposed, numbers, padding, permuted, windows_of_convolution
from pumice.ops.conv2d import Convolution
from pumice.ops.conv_of_computed import conv_of_computed

aten = torch.ops.aten


def _weight(call: Call, weight: Ref) -> Ref:
    """With the taps along the depth in front of the channels of each group; reversed where it is transposed."""
    first, second, depth, *taps = weight.shape
    if not is_transposed(call):
        shape, key = (first, depth * second, *taps), "depth"
        rows = lambda: call.value(weight).transpose(1, 2).flatten(1, 2)  # noqa: E731
    else:
        groups = call["groups"]
        shape, key = (first * depth, second, *taps), f"depth^T{groups}"
        rows = lambda: call.value(weight).flip(2).unflatten(0, (groups, -1)).movedim(3, 1).flatten(0, 2)  # noqa: E731
    return call.constant(f"{weight.key}:{key}", weight.dtype, shape, rows)


@lowers(aten.conv3d.default, aten.conv3d.padding, aten.conv_transpose3d.input)
def conv3d(call: Call) -> None:
    """With a weight of floats."""
    x, weight, groups = call.tensor("input"), call.tensor("weight"), call["groups"]
    if quantized(call, weight) is not None:
        call.refuse("a convolution of three dimensions with a quantized weight: leave it out of the quantization")
    if not weight.is_constant:
        conv_of_computed(call)
        return
    kernel, stride, dilation = list(weight.shape[2:]), numbers(call["stride"], 3), numbers(call["dilation"], 3)
    before, after = padding(call, kernel, dilation)
    batch, channels, depth, height, width = x.shape if x.rank == 5 else [1, *x.shape]
    _, made, count, *pixels = call.out.shape if call.out.rank == 5 else [1, *call.out.shape]

    x = permuted(call, call.view(x, [batch, channels, depth, height, width]), [0, 2, 1, 3, 4])
    x = windows_of_convolution(call, x, 1, count, kernel[0], stride[0], dilation[0], (before[0], after[0]))
    if groups > 1:
        x = call.view(x, [batch, count, kernel[0], groups, channels // groups, height, width])
        x = permuted(call, x, [0, 1, 3, 2, 4, 5, 6])
    images = call.view(x, [plain(batch * count), kernel[0] * channels, height, width])
    flat = Convolution(
        call, images, _weight(call, weight), call["bias"], kernel[1:], stride[1:], [*before[1:], *after[1:]],
        dilation[1:], groups, is_transposed(call),
    )  # fmt: skip
    flat.check()
    out = call.temp(x.dtype, [plain(batch * count), made, *pixels])
    flat.emit(out)
    slices = call.view(out, [batch, count, made, *pixels])
    call.emit("view", permuted(call, slices, [0, 2, 1, 3, 4]), list(call.out.shape))
