# SPDX-License-Identifier: Apache-2.0
"""pumice::sample_token (llm/sample_token.py): a token drawn from logits. See ops/sample_token.cpp."""

from __future__ import annotations

from pumice.lowering.call import Call
from pumice.lowering.registry import lowers

_INPUTS = ("logits", "options", "counts", "text", "made", "token", "position", "step")


@lowers("pumice.sample_token.default")
def sample_token(call: Call) -> None:
    """A row of logits is at most 2^24 tokens, which the operator checks. In place where made, token, position and step
    are states, or inputs that the model writes."""
    call.emit("sample_token", *(call.tensor(name) for name in _INPUTS))
