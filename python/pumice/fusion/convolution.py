# SPDX-License-Identifier: Apache-2.0
"""Finds the convolution in front of a node, with its padding and its batch norm."""

from __future__ import annotations

from dataclasses import replace

import torch

from pumice.lowering.call import Call
from pumice.lowering.quantized import quantized
from pumice.lowering.ref import Ref
from pumice.lowering.registry import Refused
from pumice.ops.conv2d import BATCH_NORMS, CONVOLUTIONS, MOST_PADDING, PADS, Convolution, batch_norm, convolution

aten = torch.ops.aten


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
