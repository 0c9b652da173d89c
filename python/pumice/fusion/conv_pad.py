# SPDX-License-Identifier: Apache-2.0
"""conv(pad(x)) -> a convolution with more padding, for zeros at the ends of what it moves over."""

from __future__ import annotations

from collections.abc import Callable

from pumice.fusion.convolution import without_pad
from pumice.lowering.call import Call
from pumice.lowering.registry import Refused, fuses
from pumice.ops.conv2d import CONVOLUTIONS, convolution


@fuses(*CONVOLUTIONS)
def conv_pad(call: Call) -> Callable[[], None] | None:
    """Matches every convolution whose input is padded by zeros along the dimensions it moves over."""
    try:
        padded = convolution(call)
    except Refused:
        return None  # its lowering says why, or has another way
    bare = without_pad(padded)
    return None if bare is padded else lambda: bare.emit(call.out)
