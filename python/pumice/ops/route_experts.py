# SPDX-License-Identifier: Apache-2.0
"""pumice::route_experts (passes/experts.py): the experts of each row. See ops/route_experts.cpp."""

from __future__ import annotations

from pumice.lowering.call import Call
from pumice.lowering.registry import lowers


@lowers("pumice.route_experts.default")
def route_experts(call: Call) -> None:
    """The number of experts, at most 1024, is checked by the operator."""
    call.emit("route_experts", call.tensor("logits"), call["count"], call["normalize"])
