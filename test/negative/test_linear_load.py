# SPDX-License-Identifier: Apache-2.0
"""Loading takes time in proportion to the file: eight times the calls take eight times as long, not sixty-four.

test/bench/load_bench.py has the figures for 10^2 to 10^5 calls."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

import pytest
from support import hostile
from support.hostile import Storage

import pumice

pytestmark = pytest.mark.large  # ./dev test-models: writing the files takes minutes

SMALL, FACTOR = 1500, 8
MARGIN = 3  # caches, and what the machine does besides; a quadratic part shows as FACTOR

FILES: list[tuple[str, Callable[[int], bytes]]] = [
    ("linears", hostile.linears),
    ("chain", hostile.relus),
    ("all alive", hostile.fan),
    ("chain of textures", lambda calls: hostile.relus(calls, Storage.texture3d)),
    ("textures all alive", lambda calls: hostile.fan(calls, Storage.texture3d)),
    ("in place", hostile.scatters),
    ("pipelines", lambda calls: hostile.attentions(calls // 50, 50)),
    ("states", lambda calls: hostile.states(calls, (4,))),
]


def seconds(data: bytes) -> float:
    """Of the processor, in all threads, so that other programs do not count; the least of two."""
    times = []
    for _ in range(2):
        gc.collect()
        start = time.process_time()
        try:
            pumice.load(data)
        except pumice.InvalidFileError as error:
            assert error.code == "LimitExceeded"
        times.append(time.process_time() - start)
    return min(times)


@pytest.mark.parametrize("make", [row[1] for row in FILES], ids=[row[0] for row in FILES])
def test_time_grows_with_the_calls(make) -> None:
    small, large = make(SMALL), make(SMALL * FACTOR)
    pumice.load(hostile.relus(1))  # the device is open
    first = seconds(small)
    second = seconds(large)
    print(f"{len(small)} bytes {first:.3f} s, {len(large)} bytes {second:.3f} s")
    assert second < FACTOR * MARGIN * max(first, 0.005)
