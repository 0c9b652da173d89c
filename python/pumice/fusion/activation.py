# SPDX-License-Identifier: Apache-2.0
"""act(linear(x)), act(conv(x)) -> the layer's own operator, which applies the activation to its sums."""

from __future__ import annotations

from collections.abc import Callable

import torch

from pumice.fusion.convolution import convolution_before
from pumice.fusion.layer import fused, layer_before
from pumice.lowering.call import Call
from pumice.lowering.registry import fuses
from pumice.ops.clamp import CLAMPS, bounds

aten = torch.ops.aten
_NAMES = {
    aten.relu.default: "relu",
    aten.silu.default: "silu",
    aten.hardswish.default: "hardswish",
    aten.hardsigmoid.default: "hardsigmoid",
}
ACTIVATION_TARGETS = (*_NAMES, aten.gelu.default, *CLAMPS)


@fuses(*ACTIVATION_TARGETS)
def activation(call: Call) -> Callable[[], None] | None:
    """Matches a layer or a convolution that this node alone reads."""
    act, x = activation_name(call), call.tensor("self")
    if not act or x.dtype is not call.out.dtype:
        return None
    return fused(call, layer_before(call, x) or convolution_before(call, x), act=act)


def activation_name(call: Call) -> str:
    """A name of ACTIVATIONS for a node of ACTIVATION_TARGETS; empty of a clamp that is none of them."""
    if call.target is aten.gelu.default:
        return "gelu_tanh" if call["approximate"] == "tanh" else "gelu"
    if call.target in _NAMES:
        return _NAMES[call.target]
    low, high = bounds(call)
    if not all(bound is None or isinstance(bound, int | float) for bound in (low, high)):
        return ""
    return {(0, 6): "relu6", (0, None): "relu"}.get((low, high), "")
