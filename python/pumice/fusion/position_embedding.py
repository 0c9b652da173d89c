# SPDX-License-Identifier: Apache-2.0
"""cat([tokens, patches]) + positions, with constant tokens and positions -> the layer of the patches alone.

Tokens in front of the patches of one image are rows of it, too, of patches that are zero: what it adds to each row is
the token and its position, or a patch's position and the bias. Others are joined to them afterwards."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from pumice.fusion.convolution import convolution_with_channels_last, input_with_channels_last
from pumice.fusion.patches import Tokens, emit_patches, is_of_patches
from pumice.lowering.call import Call
from pumice.lowering.operands import axis, fits_a_binding, numel
from pumice.lowering.permuted import PERMUTES
from pumice.lowering.ref import Ref
from pumice.lowering.registry import fuses
from pumice.lowering.sizes import same_shape
from pumice.ops.binary import pair
from pumice.ops.conv2d import Convolution

aten = torch.ops.aten
_MOST_TOKENS = 65535  # that the operator takes, ops/copy.cpp


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
        if not x.is_constant and not _is_of_patches(conv):
            return None
        parts.append(_Rows(x, conv, first))
        first += x.shape[1]
    return parts if sum(part.conv is not None for part in parts) == 1 else None


def _is_of_patches(conv: Convolution | None) -> bool:
    return conv is not None and is_of_patches(conv) and (conv.bias is None or conv.bias.is_constant)


def _can_be_rows(conv: Convolution | None, count: int, rows: int) -> bool:
    """Whether `patches` takes the patches, the last of the rows, with `count` rows of zeros: those it does not cut."""
    if conv is None or conv.x.shape[0] != 1 or count > _MOST_TOKENS:
        return False
    columns = conv.x.shape[1] * numel(conv.kernel)
    return columns % 4 == 0 and fits_a_binding([rows, columns])


def _emit(call: Call, parts: list[_Rows], positions: Ref) -> None:
    if _can_be_rows(parts[-1].conv, parts[-1].first, positions.shape[1]):
        _emit_as_rows(call, parts, positions)
    else:
        _emit_joined(call, parts, positions)


def _emit_as_rows(call: Call, parts: list[_Rows], positions: Ref) -> None:
    conv, count = parts[-1].conv, parts[-1].first
    each = [_with_positions(call, part, positions) for part in parts]
    key = "cat " + ", ".join(part.key for part in each)
    joined = lambda: torch.cat([call.value(part) for part in each], 1)  # noqa: E731
    rows = call.constant(key, positions.dtype, positions.shape, joined)
    emit_patches(call, conv, input_with_channels_last(conv), call.out, Tokens(count, rows))


def _emit_joined(call: Call, parts: list[_Rows], positions: Ref) -> None:
    each = []
    for part in parts:
        rows = _with_positions(call, part, positions)
        each.append(rows if part.conv is None else call.temp(part.x.dtype, part.x.shape))
        if part.conv is not None:
            emit_patches(call, part.conv, input_with_channels_last(part.conv), each[-1], Tokens(0, rows))
    call.emit("cat", each, 1)


def _with_positions(call: Call, part: _Rows, positions: Ref) -> Ref:
    """The constant rows: tokens, or the bias of the patches, and their positions."""
    added = part.x if part.conv is None else part.conv.bias
    begin, end = part.first, part.first + part.x.shape[1]
    key = f"{positions.key}[:, {begin}:{end}]"
    read = lambda: call.value(positions)[:, begin:end]  # noqa: E731
    if added is None:
        return call.constant(key, part.x.dtype, part.x.shape, read)
    return call.constant(f"{added.key} + {key}", part.x.dtype, part.x.shape, lambda: call.value(added) + read())
