# SPDX-License-Identifier: Apache-2.0
"""permute(conv2d(x)) to channels last, where the windows of the convolution are the patches of x -> a linear layer of
the patches: the embedding of vision transformers, and the layers between the stages of ConvNeXt."""

from __future__ import annotations

from collections.abc import Callable

from pumice.fusion.convolution import convolution_with_channels_last, input_with_channels_last
from pumice.lowering.call import Call
from pumice.lowering.operands import numel
from pumice.lowering.permuted import PERMUTES
from pumice.lowering.registry import fuses
from pumice.ops.conv2d import Convolution
from pumice.ops.linear import emit_linear


@fuses(*PERMUTES)
def patch_embedding(call: Call) -> Callable[[], None] | None:
    """Matches a permutation that alone reads a convolution with a float weight and no norm, over whole patches."""
    conv = convolution_with_channels_last(call)
    return None if conv is None or not _is_of_patches(conv) else lambda: _emit(call, conv)


def _is_of_patches(conv: Convolution) -> bool:
    if not conv.weight.is_constant or conv.norm is not None or conv.groups != 1 or conv.transposed or any(conv.pads):
        return False
    if list(conv.stride) != list(conv.kernel) or list(conv.dilation) != [1, 1] or numel(conv.kernel) == 1:
        return False
    return all(
        isinstance(size, int) and size % step == 0 for size, step in zip(conv.x.shape[2:], conv.kernel, strict=True)
    )


def _emit(call: Call, conv: Convolution) -> None:
    """`order`: of the patches' dimensions, those of a window last."""
    weight, (ky, kx) = conv.weight, conv.kernel
    batch, channels, height, width = conv.x.shape
    y, x = (height // ky, ky), (width // kx, kx)
    given = input_with_channels_last(conv)
    if given is None:
        source, shape, order, name = conv.x, [batch, channels, *y, *x], [0, 2, 4, 1, 3, 5], "patches"
        values = lambda: call.value(weight).flatten(1)  # noqa: E731
    else:
        source, shape, order, name = given[0], [batch, *y, *x, channels], [0, 1, 3, 2, 4, 5], "patches, channels last"
        values = lambda: call.value(weight).permute(0, 2, 3, 1).flatten(1)  # noqa: E731
    patches = call.temp(source.dtype, [shape[dim] for dim in order])
    call.emit("permute", call.view(source, shape), order, out=patches)
    columns = channels * ky * kx
    rows = call.constant(f"{weight.key}:{name}", weight.dtype, (weight.shape[0], columns), values)
    emit_linear(call, call.view(patches, [*call.out.shape[:-1], columns]), rows, conv.bias, call.out)
