# SPDX-License-Identifier: Apache-2.0
"""Runs or loads for long in a process of its own: python -m support.soak runs|loads|devices COUNT [LEAK_BYTES].

Prints JSON: {"count", "bytes": slope of resident memory in bytes a cycle, "files", "threads": change in number}.
LEAK_BYTES plants a leak of so many bytes a cycle. No torch."""

from __future__ import annotations

import ctypes
import json
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np

import pumice
from support import hostile

SAMPLES = 20
leaked: list[bytes] = []
kept: list[pumice.Session] = []


def resident() -> int:
    ctypes.CDLL(None).malloc_trim(0)
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def runs() -> Callable[[int], None]:
    """Calls of one session, at 3 batch sizes in turn; answers are compared with NumPy's."""
    session = pumice.load(hostile.dynamic(4))
    inputs = [np.arange(size, dtype=np.float32) - 3 for size in (7, 256, 31)]
    wanted = [x + np.maximum(x, 0) for x in inputs]

    def one(index: int) -> None:
        (got,) = session.run_flat([inputs[index % 3]])
        assert np.array_equal(got, wanted[index % 3]), f"run {index}"

    return one


def devices() -> Callable[[int], None]:
    """A load, a run and an end, where each load opens the device and each end closes it; of five files one is bad, each
    time in another byte."""
    good = [hostile.relus(3), hostile.linears(2, 8, 8), hostile.fan(3), hostile.states(2, (4, 4))]
    width = {0: 8, 1: 8, 2: 8, 3: 1}

    def one(index: int) -> None:
        kind = index % 5
        if kind < 4:
            shape = (1, width[kind]) if kind < 3 else (1,)
            pumice.load(good[kind]).run_flat([np.ones(shape, np.float32)])
            return
        bad = bytearray(good[index // 5 % 4])
        bad[index % len(bad)] ^= 1 + index % 255
        try:
            pumice.load(bytes(bad))
        except pumice.InvalidFileError:
            return
        raise AssertionError(f"load {index}: a changed byte was not seen")

    return one


def loads() -> Callable[[int], None]:
    """As devices(), while another session keeps the device open, with its pipelines."""
    kept.append(pumice.load(hostile.relus(1)))
    return devices()


def measure(one: Callable[[int], None], count: int, leak: int) -> dict[str, float]:
    for index in range(count // 4):  # to warm up
        one(index)
    step = max(1, count // SAMPLES)
    files, threads = len(list(Path("/proc/self/fd").iterdir())), len(list(Path("/proc/self/task").iterdir()))
    memory = []
    for index in range(step * SAMPLES):
        one(index)
        if leak:
            leaked.append(bytes(leak))
        if index % step == step - 1:
            memory.append(resident())
    slope = float(np.polyfit(np.arange(SAMPLES) * step, memory, 1)[0])
    return {
        "count": step * SAMPLES,
        "bytes": round(slope, 1),
        "files": len(list(Path("/proc/self/fd").iterdir())) - files,
        "threads": len(list(Path("/proc/self/task").iterdir())) - threads,
    }


if __name__ == "__main__":
    assert threading.active_count() == 1
    work = {"runs": runs, "loads": loads, "devices": devices}[sys.argv[1]]()
    print(json.dumps(measure(work, int(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 0)))
