# SPDX-License-Identifier: Apache-2.0
"""Convolutions whose windows are the patches of an image, as a linear layer of the patches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pumice.lowering.call import Call
from pumice.lowering.operands import numel
from pumice.lowering.ref import Ref
from pumice.ops.conv2d import Convolution
from pumice.ops.linear import emit_linear


def is_of_patches(conv: Convolution) -> bool:
    """Whether the windows are whole patches, and the weight is of floats without a norm."""
    if not conv.weight.is_constant or conv.norm is not None or conv.groups != 1 or conv.transposed or any(conv.pads):
        return False
    if list(conv.stride) != list(conv.kernel) or list(conv.dilation) != [1, 1] or numel(conv.kernel) == 1:
        return False
    return all(
        isinstance(size, int) and size % step == 0 for size, step in zip(conv.x.shape[2:], conv.kernel, strict=True)
    )


def emit_patches(
    call: Call, conv: Convolution, given: tuple[Ref, Sequence[Any]] | None, out: Ref, residual: Ref | None = None
) -> None:
    """The convolution into `out`, [.., channels], plus the residual of the same shape. `given`: the tensor whose
    channels are last that x is a permutation of. `order`: of the patches' dimensions, those of a window last."""
    weight, (ky, kx) = conv.weight, conv.kernel
    batch, channels, height, width = conv.x.shape
    y, x = (height // ky, ky), (width // kx, kx)
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
    emit_linear(call, call.view(patches, [*out.shape[:-1], columns]), rows, conv.bias, out, residual=residual)
