# SPDX-License-Identifier: Apache-2.0
"""How many tokens a submit makes, and what two texts have in common."""

from __future__ import annotations

from collections.abc import Sequence

MOST_STEPS = 32  # of one run
_SUBMIT_SECONDS = 0.05


def next_count(count: int, seconds: float) -> int:
    """Steps of the next submit, where one of `count` took so long."""
    return max(1, min(MOST_STEPS, int(_SUBMIT_SECONDS * count / seconds)))


def common(a: Sequence[int], b: Sequence[int]) -> int:
    """How many tokens at the beginning are the same."""
    size = min(len(a), len(b))
    if a[:size] == b[:size]:
        return size
    return next((index for index in range(size) if a[index] != b[index]), size)
