# SPDX-License-Identifier: Apache-2.0
"""Finds the convolution in front of a node, with its padding and its batch norm; and those between tensors whose
channels are last: as images, [batch, y, x, channels], or as tokens, [batch, y * x, channels]."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch

from pumice.lowering.call import Call
from pumice.lowering.operands import numel
from pumice.lowering.permuted import PERMUTES, permutation
from pumice.lowering.quantized import quantized
from pumice.lowering.ref import Ref
from pumice.lowering.registry import Refused
from pumice.lowering.sizes import CHANNELS_FIRST, CHANNELS_LAST, same_shape
from pumice.ops.conv2d import BATCH_NORMS, CONVOLUTIONS, MOST_PADDING, PADS, Convolution, batch_norm, convolution

aten = torch.ops.aten
_VIEWS = (aten.view.default, aten.view_copy.default, aten._unsafe_view.default, aten.reshape.default)
_TOKENS = [0, 2, 1]  # [batch, pixels, channels] from [batch, channels, pixels], and back


def without_pad(conv: Convolution) -> Convolution:
    """The convolution of what was padded by zeros for it alone, with the padding added to its own; else itself."""
    pad = None if conv.transposed else conv.call.producer(conv.x, *PADS)
    if pad is None or (pad.target is aten.pad.default and pad["mode"] != "constant") or pad["value"]:
        return conv
    given = pad["pad"]  # of the last dimension first: at its begin, at its end
    if len(given) > 2 * (conv.weight.rank - 2) or any(not isinstance(size, int) or size < 0 for size in given):
        return conv
    left, right, above, below = [*given, *[0] * (4 - len(given))]
    sums = [a + b for a, b in zip(conv.pads, (above, left, below, right), strict=True)]
    return conv if max(sums) >= MOST_PADDING else replace(conv, x=pad.tensor("self"), pads=sums)


def with_norm(norm: Call) -> Convolution | None:
    """Of a batch norm: the convolution in front of it with other weights, which computes both."""
    alone = batch_norm(norm)
    before = convolution_before(norm, alone.x)
    if before is None or before.norm is not None or not before.fits(alone.x):
        return None
    return replace(before, norm=alone.norm) if quantized(norm, before.weight) is None else None


def convolution_before(call: Call, ref: Ref) -> Convolution | None:
    """The convolution, or the batch norm, that made `ref` for the node of `call` alone."""
    producer = call.producer(ref, *CONVOLUTIONS, *BATCH_NORMS, single_use=True)
    return None if producer is None else convolution_of(producer)


def convolution_of(producer: Call) -> Convolution | None:
    """Of a node whose target is one of CONVOLUTIONS or BATCH_NORMS; None where no operator computes it."""
    try:
        if producer.target in BATCH_NORMS:
            return with_norm(producer) or batch_norm(producer)
        return without_pad(convolution(producer))
    except Refused:
        return None


def convolution_with_channels_last(call: Call) -> Convolution | None:
    """The convolution over two dimensions that the permutation of `call` alone reads, to make its channels last."""
    made = call.tensor("self")
    if made.rank == 3 and permutation(call) == _TOKENS:
        view = call.producer(made, *_VIEWS, single_use=True)
        made = view.tensor("self") if view is not None else made
    elif made.rank != 4 or permutation(call) != CHANNELS_LAST:
        return None
    conv = convolution_before(call, made) if made.rank == 4 else None
    if conv is None or conv.weight is None or conv.weight.rank != 4 or not conv.fits(call.out):
        return None
    pixels = [numel(made.shape[2:])] if call.out.rank == 3 else made.shape[2:]
    return conv if same_shape(call.out.shape, [made.shape[0], *pixels, made.shape[1]]) else None


def input_with_channels_last(conv: Convolution) -> tuple[Ref, Sequence[Any]] | None:
    """The tensor whose channels are last that x of the convolution is a permutation of, and its shape as images."""
    call, (batch, channels, *pixels) = conv.call, conv.x.shape
    before = call.producer(conv.x, *PERMUTES)
    if before is not None:
        inner = before.tensor("self")
        return (inner, inner.shape) if permutation(before) == CHANNELS_FIRST else None
    view = call.producer(conv.x, *_VIEWS)
    before = view.producer(view.tensor("self"), *PERMUTES) if view is not None else None
    if before is None or before.out.rank != 3 or permutation(before) != _TOKENS:
        return None
    inner = before.tensor("self")
    is_image = same_shape(inner.shape, [batch, numel(pixels), channels])
    return (inner, [batch, *pixels, channels]) if is_image else None
