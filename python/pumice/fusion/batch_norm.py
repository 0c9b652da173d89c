# SPDX-License-Identifier: Apache-2.0
"""batch_norm(conv(x)) with constant statistics -> a convolution with other weights and another bias."""

from __future__ import annotations

from collections.abc import Callable

from pumice.fusion.convolution import with_norm
from pumice.lowering.call import Call
from pumice.lowering.operands import used_outputs
from pumice.lowering.registry import fuses
from pumice.ops.conv2d import BATCH_NORMS


@fuses(*BATCH_NORMS)
def batch_norm(call: Call) -> Callable[[], None] | None:
    """Matches a convolution with a float weight that this norm alone reads."""
    conv = with_norm(call) if used_outputs(call) in ([], [0]) else None
    return None if conv is None else lambda: conv.emit(call.out)
