# SPDX-License-Identifier: Apache-2.0
"""Random numbers of a seed: pumice::random, which passes/random_numbers.py puts in the place of torch's operators."""

from __future__ import annotations

from pumice.lowering.call import Call
from pumice.lowering.registry import lowers


@lowers("pumice.random.default")
def random(call: Call) -> None:
    """The numbers of one stream."""
    call.emit("random", call.tensor("seed"), call["stream"], call["kind"], list(call.out.shape))
