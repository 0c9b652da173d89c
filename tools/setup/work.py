# SPDX-License-Identifier: Apache-2.0
"""What a whole program must do, from the rows of `pumice-rt profile`, and the least time for it by a device's ceilings.

The ceiling of a network is the larger of its bytes over the rate of reading and its operations over the rates of their
arithmetics, which the rows name and `pumice-rt kernel bench` measures.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping

SIZES = {"f32": 4, "f16": 2, "i8": 1}  # bytes of an element of a cache


def work(rows: Iterable[Mapping]) -> dict:
    """Bytes that its operators read and write, weights and caches among them, and operations by their arithmetic."""
    operations: Counter[str] = Counter()
    moved = 0
    for row in rows:
        moved += row["bytes"]
        operations.update(row["operations"])
    return {"bytes": moved, "operations": dict(operations)}


def work_of_a_token(rows: Iterable[Mapping], program: Mapping, position: int) -> dict:
    """As work(), of a language model's next token after `position`, with the bytes of all weights (the head is the
    embedding) and of the caches up to there: rows have the whole caches, twice. program: what `inspect` says."""
    (method,) = [method for method in program["methods"] if method["name"] == "decode"]
    caches = sum(
        SIZES[state["dtype"]] * math.prod(state["dims"]) * position // state["dims"][2]
        for state in method["states"]
        if len(state["dims"]) == 4  # [batch, heads, positions, size of a head]
    )
    return work(rows) | {"bytes": program["header"]["constant_bytes"] + caches}


def least_seconds(work: Mapping, read: float, rates: Mapping[str, float]) -> float:
    """No program that moves so much and computes so much takes less. read: bytes a second."""
    computing = sum(count / rates[name] for name, count in work["operations"].items())
    return max(work["bytes"] / read, computing)
