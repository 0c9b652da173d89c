# SPDX-License-Identifier: Apache-2.0
"""pumice::sample_token (llm/sample_token.py): a token drawn from logits. See ops/sample_token.cpp."""

from __future__ import annotations

from pumice.lowering.call import Call
from pumice.lowering.registry import lowers

_INPUTS = ("logits", "options", "counts", "text", "made", "position", "step")


@lowers("pumice.sample_token.default")
def sample_token(call: Call) -> None:
    call.emit("sample_token", *(call.tensor(name) for name in _INPUTS))
