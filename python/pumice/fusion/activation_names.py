# SPDX-License-Identifier: Apache-2.0
"""Which nodes are activations that a layer's operator can apply to its sums."""

from __future__ import annotations

import torch

from pumice.lowering.call import Call
from pumice.ops.clamp import CLAMPS, bounds

aten = torch.ops.aten
_NAMES = {
    aten.relu.default: "relu",
    aten.silu.default: "silu",
    aten.hardswish.default: "hardswish",
    aten.hardsigmoid.default: "hardsigmoid",
}
ACTIVATION_TARGETS = (*_NAMES, aten.gelu.default, *CLAMPS)


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
