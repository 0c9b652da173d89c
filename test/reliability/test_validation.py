# SPDX-License-Identifier: Apache-2.0
"""What a process under test does wrong with Vulkan reaches the test that started it: test/conftest.py."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.command_line import ROOT
from support.validation_log import complaints

RUN = [sys.executable, "-c", "from pumice.runtime.selftest import self_test; self_test()"]
PLANTS_A_RACE = ROOT / "build/release/bin/vulkan_test"  # at its start: test/support/main.cpp

needs_layer = pytest.mark.skipif(os.environ.get("PUMICE_VALIDATE") != "1", reason="needs PUMICE_VALIDATE=1")


def lines_of(command: list[object], log: Path, validate: str | None) -> list[str]:
    environment = {**os.environ, "PUMICE_VALIDATE_LOG": str(log), "PUMICE_VALIDATE": validate or ""}
    if validate is None:
        del environment["PUMICE_VALIDATE"]
    subprocess.run(command, env=environment, capture_output=True, check=True, timeout=120)
    return log.read_text().splitlines()


@needs_layer
def test_a_planted_race_in_a_child_is_told(tmp_path: Path) -> None:
    if not PLANTS_A_RACE.exists():
        pytest.skip("needs ./dev build")
    lines = lines_of([PLANTS_A_RACE, "--gtest_filter=Nothing.*"], tmp_path / "log", "1")
    assert any("message SYNC-HAZARD" in line for line in complaints(lines)), lines


@needs_layer
@pytest.mark.parametrize(("validate", "count"), [("1", 0), ("0", 0), (None, 1)])
def test_a_child_that_lost_the_variable_is_told(validate: str | None, count: int, tmp_path: Path) -> None:
    lines = lines_of(RUN, tmp_path / "log", validate)
    assert len(lines) == 1 and len(complaints(lines)) == count, lines
