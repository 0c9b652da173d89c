# SPDX-License-Identifier: Apache-2.0
"""act(linear(x)), act(conv(x)) -> the layer's own operator, which applies the activation to its sums."""

from __future__ import annotations

from collections.abc import Callable

from pumice.fusion.activation_names import ACTIVATION_TARGETS, activation_name
from pumice.fusion.convolution import convolution_before
from pumice.fusion.layer import fused, layer_before
from pumice.lowering.call import Call
from pumice.lowering.registry import fuses


@fuses(*ACTIVATION_TARGETS)
def activation(call: Call) -> Callable[[], None] | None:
    """Matches a layer or a convolution that this node alone reads."""
    act, x = activation_name(call), call.tensor("self")
    if not act or x.dtype is not call.out.dtype:
        return None
    return fused(call, layer_before(call, x) or convolution_before(call, x), act=act)
