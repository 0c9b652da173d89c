# SPDX-License-Identifier: Apache-2.0
"""permute(depthwise conv2d(permute(x))) -> an operator that reads and writes channels last.

passes/channels_last.py brings the blocks of ConvNeXt into this form; SegFormer has it between its tokens."""

from __future__ import annotations

from collections.abc import Callable

from pumice.fusion.convolution import convolution_with_channels_last, input_with_channels_last
from pumice.lowering.call import Call
from pumice.lowering.permuted import PERMUTES
from pumice.lowering.registry import fuses


@fuses(*PERMUTES)
def depthwise_channels_last(call: Call) -> Callable[[], None] | None:
    """Matches a permutation that alone reads the convolution, with whole vec4 groups of channels."""
    conv = convolution_with_channels_last(call)
    given = input_with_channels_last(conv) if conv is not None and conv.runs_channels_last() else None
    return None if given is None else lambda: conv.emit_channels_last(call.view(*given), call.out)
