# SPDX-License-Identifier: Apache-2.0
"""A process ends without an abort or a hang, whatever is alive (ids R12, R13)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from support.exits import SHAPE, WAYS
from support.hostile import chain
from support.long_form import times

from pumice.format.ir import ValueId

# The layer waits in a forked child for a thread of its own, which the child does not have.
WITHOUT_LAYER = {"fork": {"PUMICE_VALIDATE": "0"}}
ENDS = {"error": {1}, "interrupt": {130, -signal.SIGINT, 1}}  # statuses; 0 for the others


@pytest.fixture(scope="module")
def path(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("exit") / "relus.pumice"
    path.write_bytes(chain(32, SHAPE, lambda b, _, x, y: b.call("relu", [ValueId(x)], [y])))
    return path


@pytest.mark.parametrize("way", WAYS)
def test_the_process_ends_cleanly(way: str, path: Path) -> None:
    random = np.random.default_rng(0)
    for index in range(times(5, 100)):
        command = [sys.executable, "-m", "support.exits", way, path, str(random.uniform(0, 0.05))]
        search = os.pathsep.join(["test", "python"])
        done = subprocess.run(
            list(map(str, command)),
            cwd=Path(__file__).parents[2],
            env={**os.environ, "PYTHONPATH": search, "PYTHONFAULTHANDLER": "1"} | WITHOUT_LAYER.get(way, {}),
            capture_output=True,
            text=True,
            timeout=60,  # a hang
        )
        said = f"{way}, number {index}: status {done.returncode}\n{done.stderr[-3000:]}"
        assert done.returncode in ENDS.get(way, {0}), said
        for word in ("terminate called", "Fatal Python error", "Segmentation", "Assertion", "validation:"):
            assert word not in done.stderr, said
        assert way != "interrupt" or "KeyboardInterrupt" in done.stderr, said
        assert way != "error" or "expected 1 input" in done.stderr, said
