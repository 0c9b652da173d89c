# SPDX-License-Identifier: Apache-2.0
"""Hostile files: small, and asking for much. Each gets a typed error or loads, in 1 s of the processor's time and
within twice its size + 64 MB of host memory, beside the device memory that it was granted.

Loads of 10^4 calls are timed by test_linear_load.py: a CPU driver takes 0.1 ms for a kernel that packs a weight."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from support import hostile

import pumice

pytestmark = pytest.mark.every  # what strangers send: each case in every run

GRANTED = 256 << 20  # max_memory
SECONDS, SLACK = 1.0, 64 << 20

# Loads a small file first: what the first use of a device takes does not count.
CHILD = """
import json, sys, time
import pumice

def status(field):
    return int(next(line for line in open("/proc/self/status") if line.startswith(field)).split()[1]) << 10

pumice.load(sys.argv[1], cache_dir="off")
with open("/proc/self/clear_refs", "w") as file:
    file.write("5")  # the peak begins anew
before, start = status("VmRSS"), time.process_time()
facts = {"code": "", "text": "", "device": 0}
try:
    session = pumice.load(sys.argv[2], cache_dir="off", max_memory=int(sys.argv[3]))
    needs = session.needs
    facts["device"] = max(needs["loading"], sum(needs.values()) - needs["loading"])
except pumice.Error as error:
    facts |= {"code": error.code, "text": str(error)[:300]}
facts |= {"seconds": time.process_time() - start, "bytes": status("VmHWM") - before}
pumice.load(sys.argv[1], cache_dir="off")
print(json.dumps(facts))
"""

BOMBS: list[tuple[str, Callable[[], bytes], str]] = [
    ("400 states of 256 MB", lambda: hostile.states(400, (1 << 26,)), "LimitExceeded"),
    ("10,000 states of 4 MB", lambda: hostile.states(10_000, (1 << 20,)), "LimitExceeded"),
    ("weights that grow when packed", lambda: hostile.columns(40, 1 << 18), "LimitExceeded"),
    ("values far larger than the file", lambda: hostile.large_values(100, 1 << 25), "LimitExceeded"),
    ("values at a large hint", lambda: hostile.dynamic(1 << 25), "LimitExceeded"),
    ("values within huge bounds", lambda: hostile.dynamic(4), ""),
    ("a pipeline a call", lambda: hostile.attentions(70, 70), "LimitExceeded"),
    ("3,000 linears", lambda: hostile.linears(3000), ""),
    ("10,000 calls", lambda: hostile.relus(10_000), ""),
    ("10,000 textures", lambda: hostile.relus(10_000, hostile.Storage.texture3d), ""),
    ("4,000 textures at once", lambda: hostile.fan(4000, hostile.Storage.texture3d), ""),
    ("calls in place", lambda: hostile.scatters(8000), ""),
    ("expressions that double", lambda: hostile.doubling(50_000), "BadShape"),
    ("expressions in a long chain", lambda: hostile.expressions(50_000), ""),
    ("inputs of many expressions", lambda: hostile.many_inputs(5000), ""),
    ("long names", lambda: hostile.long_names(5000), "LimitExceeded"),
    ("equal names", lambda: hostile.equal_names(10_000), "BadSchema"),
    ("a list longer than any", lambda: hostile.long_list(100_000), "LimitExceeded"),
    ("deep nesting", lambda: hostile.nested('{"t":[' * 4000 + "null" + "]}" * 4000), "BadSchema"),
    ("wide nesting", lambda: hostile.nested('{"t":[' + ",".join(['{"c":1}'] * 100_000) + ",null]}"), ""),
    ("named tuples", lambda: hostile.nested('{"t":[' + ",".join([hostile.TUPLE] * 30_000) + ",null]}"), ""),
]


@pytest.mark.parametrize(("make", "code"), [row[1:] for row in BOMBS], ids=[row[0] for row in BOMBS])
def test_bombs(make, code, tmp_path: Path) -> None:
    data = make()
    bomb, good = tmp_path / "bomb.pumice", tmp_path / "good.pumice"
    bomb.write_bytes(data)
    good.write_bytes(hostile.linears(3))
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(good), str(bomb), str(GRANTED)],
        env={**os.environ, "PUMICE_VALIDATE": "0", "MALLOC_ARENA_MAX": "2"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    print(f"{len(data)} bytes: {facts}")
    assert facts["code"] == code, facts
    assert facts["bytes"] <= 2 * len(data) + SLACK + facts["device"], facts
    assert facts["seconds"] <= SECONDS, facts


def test_a_long_program_is_no_bomb() -> None:
    pumice.load(hostile.relus(100_000), max_seconds=60)
