# SPDX-License-Identifier: Apache-2.0
"""cat([tokens, patches]) + positions, with constant tokens and positions -> the layer of the patches adds their
positions, and the tokens have theirs already."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from pumice.fusion.convolution import convolution_with_channels_last, input_with_channels_last
from pumice.fusion.patches import emit_patches, is_of_patches
from pumice.lowering.call import Call
from pumice.lowering.operands import axis
from pumice.lowering.permuted import PERMUTES
from pumice.lowering.ref import Ref
from pumice.lowering.registry import fuses
from pumice.lowering.sizes import same_shape
from pumice.ops.binary import pair
from pumice.ops.conv2d import Convolution

aten = torch.ops.aten


@dataclass(frozen=True)
class _Rows:
    """An input of the cat: a constant, or patches. `first`: its first row in the result."""

    x: Ref
    conv: Convolution | None
    first: int


@fuses(aten.add.Tensor)
def position_embedding(call: Call) -> Callable[[], None] | None:
    """Matches a sum of the shape of its constant, that alone reads the cat, which alone reads the patches."""
    a, b = pair(call)
    if not (isinstance(a, Ref) and isinstance(b, Ref)) or call["alpha"] != 1 or a.is_constant is b.is_constant:
        return None
    joined, positions = (b, a) if a.is_constant else (a, b)
    parts = _parts(call, joined)
    fits = same_shape(positions.shape, joined.shape) and positions.dtype is joined.dtype is call.out.dtype
    return (lambda: _emit(call, parts, positions)) if parts and fits else None


def _parts(call: Call, joined: Ref) -> list[_Rows] | None:
    """The inputs of the cat [B, L, N]: constants, and once patches."""
    cat = call.producer(joined, aten.cat.default, single_use=True)
    if cat is None or joined.rank != 3 or axis(cat["dim"], 3) != 1:
        return None
    parts, first = [], 0
    for x in cat["tensors"]:
        if x.rank != 3 or x.dtype is not joined.dtype or not isinstance(x.shape[1], int):
            return None
        permute = None if x.is_constant else cat.producer(x, *PERMUTES, single_use=True)
        conv = None if permute is None else convolution_with_channels_last(permute)
        if not x.is_constant and (conv is None or not is_of_patches(conv)):
            return None
        parts.append(_Rows(x, conv, first))
        first += x.shape[1]
    return parts if sum(part.conv is not None for part in parts) == 1 else None


def _emit(call: Call, parts: list[_Rows], positions: Ref) -> None:
    call.emit("cat", [_with_positions(call, part, positions) for part in parts], 1)


def _with_positions(call: Call, part: _Rows, positions: Ref) -> Ref:
    x, end = part.x, part.first + part.x.shape[1]
    rows = f"{positions.key}[:, {part.first}:{end}]"
    read = lambda: call.value(positions)[:, part.first : end]  # noqa: E731
    if part.conv is None:
        return call.constant(f"{x.key} + {rows}", x.dtype, x.shape, lambda: call.value(x) + read())
    out = call.temp(x.dtype, x.shape)
    residual = call.constant(rows, x.dtype, x.shape, read)
    emit_patches(call, part.conv, input_with_channels_last(part.conv), out, residual)
    return out
