# SPDX-License-Identifier: Apache-2.0
"""Convolutions whose windows are the patches of an image, as a linear layer of the patches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pumice.lowering.call import Call
from pumice.lowering.operands import numel
from pumice.lowering.ref import Ref
from pumice.ops.conv2d import Convolution
from pumice.ops.linear import emit_linear


@dataclass(frozen=True)
class Tokens:
    """`count` rows in front of those of one image's patches, [1, count + patches, channels]. `rows`, of the same
    shape: what these are, and then what is added to each patch, the bias in it."""

    count: int
    rows: Ref


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
    call: Call, conv: Convolution, given: tuple[Ref, Sequence[Any]] | None, out: Ref, tokens: Tokens | None = None
) -> None:
    """The convolution into `out`, [.., channels]. `given`: the tensor whose channels are last that x is a permutation
    of."""
    weight, (ky, kx) = conv.weight, conv.kernel
    batch, channels, height, width = conv.x.shape
    source, name = (conv.x, "patches") if given is None else (given[0], "patches, channels last")
    order = [0, 1, 2, 3] if given is None else [0, 2, 3, 1]
    zeros, columns = tokens.count if tokens else 0, channels * ky * kx
    patches = call.temp(source.dtype, [batch, zeros + height // ky * (width // kx), columns])
    call.emit("patches", source, [ky, kx], zeros, given is not None, out=patches)
    values = lambda: call.value(weight).permute(order).flatten(1)  # noqa: E731
    rows = call.constant(f"{weight.key}:{name}", weight.dtype, (weight.shape[0], columns), values)
    x = call.view(patches, [*out.shape[:-1], columns])
    if tokens is None:
        emit_linear(call, x, rows, conv.bias, out)
    else:
        emit_linear(call, x, rows, None, out, residual=tokens.rows)
