# SPDX-License-Identifier: Apache-2.0
"""pumice::step_inputs and pumice::step_outputs (llm/step_state.py). See ops/step_state.cpp."""

from __future__ import annotations

from pumice.lowering.call import Call
from pumice.lowering.registry import lowers


@lowers("pumice.step_inputs.default")
def step_inputs(call: Call) -> None:
    """Integers of one type."""
    call.emit("step_inputs", *(call.tensor(name) for name in ("tokens", "first", "token", "step")))


@lowers("pumice.step_outputs.default")
def step_outputs(call: Call) -> None:
    """In place where made, token and step are states."""
    call.emit("step_outputs", *(call.tensor(name) for name in ("made", "token", "step", "chosen", "steps")))
