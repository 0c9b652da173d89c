# SPDX-License-Identifier: Apache-2.0
"""What a whole program must do, from the rows of `pumice-rt profile`, and the least time for it by a device's ceilings.

The ceiling of a network is the larger of its bytes over the rate of reading and its operations over the rates of the
fastest units that give the same results, as that of a kernel is in `pumice-rt kernel bench` (Ceilings::roof_us).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping

BY_FP16 = {"f32": 0, "f32 by 2": 2, "f32 by 3": 3}  # products of fp16 numbers that make one of fp32 numbers; 0: none do

SIZES = {"f32": 4, "f16": 2, "i8": 1}  # bytes of an element of a cache


def work(rows: Iterable[Mapping]) -> dict:
    """Bytes that its operators read and write, weights and caches among them, and operations by their arithmetic."""
    operations: Counter[str] = Counter()
    moved = 0
    for row in rows:
        moved += row["bytes"]
        operations[_arithmetic(row)] += row["flops"]
    return {"bytes": moved, "operations": {name: count for name, count in operations.items() if count}}


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


def _arithmetic(row: Mapping) -> str:
    """Of an operator: "i8" where activations are integers, else by their type, as linear.cpp and conv.cpp have it."""
    op = row["op"]
    if any(word in op for word in ("q8ta", "qta8a", "dq8ca")):
        return "i8"
    # The words of conv2d: numbers in the layout for matrices of fp16, for which fp32 has none.
    if row["shapes"].startswith("f16") or (op == "conv2d" and row["shapes"].startswith("i32")):
        return "f16"
    if not op.startswith("linear"):
        return "f32"
    return "f32 by 3" if op == "linear" else "f32 by 2"


def least_seconds(work: Mapping, ceilings: Mapping[str, float]) -> float:
    """No program that moves so much and computes so much takes less."""
    computing = sum(count / _rate(name, ceilings) for name, count in work["operations"].items())
    return max(work["bytes"] / ceilings["read"], computing)


def _rate(arithmetic: str, ceilings: Mapping[str, float]) -> float:
    def fastest(*names: str) -> float:
        return max(ceilings.get(name) or 0 for name in names)

    if arithmetic in BY_FP16:
        products = BY_FP16[arithmetic]
        return max(fastest("f32"), fastest("f16 matrix") / products if products else 0)
    floats = ("f32", "f16", "f16 matrix")
    return fastest(*floats, "dot", "s8 matrix") if arithmetic == "i8" else fastest(*floats)
