# SPDX-License-Identifier: Apache-2.0
"""Long use takes no more memory, files or threads: support/soak.py, in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from support.command_line import ROOT
from support.long_form import times

BYTES_A_CYCLE = 1024
COUNTS = {
    "runs": times(10_000, 100_000),
    "loads": times(1_000, 10_000),
    "devices": times(0, 12_000),  # the driver takes memory in steps of 1 MB during the first 3000
}


def soak(*words: object) -> dict[str, float]:
    variables = {"PYTHONPATH": os.pathsep.join(["test", "python"]), "PUMICE_CACHE_DIR": "off"}
    if words[0] == "devices":  # the validation layer keeps 1.2 KiB of each instance; this test is of Pumice
        variables["PUMICE_VALIDATE"] = "0"
    done = subprocess.run(
        [sys.executable, "-m", "support.soak", *map(str, words)],
        cwd=ROOT,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=times(300, 3000),
    )
    assert done.returncode == 0, done.stderr[-3000:]
    print(words, done.stdout.strip())
    return json.loads(done.stdout)


@pytest.mark.parametrize("work", COUNTS)
def test_nothing_grows(work: str) -> None:
    if COUNTS[work] == 0:
        pytest.skip("only in ./dev test-long: 5 minutes")
    found = soak(work, COUNTS[work])
    assert found["bytes"] < BYTES_A_CYCLE and found["files"] == found["threads"] == 0, found


def test_a_leak_is_seen() -> None:
    assert soak("loads", 1_000, 4 * BYTES_A_CYCLE)["bytes"] > BYTES_A_CYCLE
