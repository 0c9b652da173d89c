# SPDX-License-Identifier: Apache-2.0
"""Convolutions with integers in and out: q8ta_conv2d."""

from __future__ import annotations

from pumice.fusion.convolution import convolution_of
from pumice.fusion.integers import Step, Target, computes
from pumice.lowering.call import Call
from pumice.lowering.quantized import quantized
from pumice.lowering.registry import Refused
from pumice.ops.conv2d import CONVOLUTIONS


@computes(*CONVOLUTIONS)
def convolved(call: Call, act: str, to: Target) -> Step | None:
    """With int8 weights by output channel and 8-bit activations."""
    conv = convolution_of(call)
    source = conv.source() if conv is not None else None
    q = quantized(conv.call, conv.weight) if source is not None else None
    if q is None:
        return None
    try:
        weight = conv.integers(q)
    except Refused:
        return None
    return lambda out: conv.emit_integers("q8ta_conv2d", source, weight, act, to.numbers, out)
