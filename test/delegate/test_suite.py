# SPDX-License-Identifier: Apache-2.0
"""`./dev test-executorch`: a few of the tests in ExecuTorch's wheel, and the record of what is delegated."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from executorch.backends.test.suite.reporting import TestCaseSummary
from executorch.backends.test.suite.reporting import TestResult as Result
from support.executorch_suite import share
from support.executorch_suite.excuse import excused

FEW = "test_add_f32 or test_glu_dtype or test_alexnet or cat_width_dynamic or grid_priors"


def test_a_few_of_executorchs_tests(tmp_path: Path) -> None:
    """Tests of operators, of models whose packages are not installed, and of the Vulkan delegate."""
    command = [sys.executable, "-W", "ignore", "-m", "support.executorch_suite", "-n0", "-k", FEW]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, f"{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    said = dict(re.findall(r"^\[ *\d+/\d+\] (\S+): (.+)$", done.stdout, re.MULTILINE))
    assert said["operators/test_add::test_add_f32_alpha"] == "1 delegated and right"
    assert said["models/test_torchvision::test_alexnet"] == "1 not installed"
    assert said["vulkan/test_vulkan_delegate::test_vulkan_backend_cat_width_dynamic_shapes"] == "1 delegated and right"
    assert said["vulkan/test_vulkan_delegate::test_vulkan_backend_grid_priors"] == "1 skipped"
    assert re.search(
        r"^[1-9]\d* delegated and right, .* 1 not installed, 0 WRONG, 0 FAILED$", done.stdout, re.MULTILINE
    )


def test_the_share_may_only_grow() -> None:
    recorded = {"a": "dfd", "b": "f", "c": "d"}
    assert share.lost({"a": "ddd", "b": "d", "new": "d"}, recorded) == []
    assert share.lost({"a": "ffd"}, recorded) == ["a"]
    assert share.lost({"a": "df", "c": "x"}, recorded) == ["a", "c"]
    assert share.gained({"a": "ddd", "b": "d", "new": "d"}, recorded) == 3


def test_nothing_recorded_is_wrong() -> None:
    recorded = share.load()
    assert all(share.grouped(recorded).values())
    assert not [name for name, letters in recorded.items() if set(letters) - set("dfs")]


MISSING, OTHER = RuntimeError("Failed to execute method forward, error: 0x14"), RuntimeError("error: 0x20")
NAMED = NotImplementedError("No registered serialization name for <class 'torch.return_types.median'> found.")
UNKNOWN = Result.UNKNOWN_FAIL
RUN, MISMATCH, LOWER = Result.PTE_RUN_FAIL, Result.OUTPUT_MISMATCH_FAIL, Result.LOWER_FAIL


def case(result: Result, error: Exception | None) -> TestCaseSummary:
    return TestCaseSummary("", "", "", "", 0, None, result, error, [])


@pytest.mark.parametrize(
    ("ours", "alone", "delegated", "expected"),
    [
        ((RUN, MISSING), (RUN, MISSING), True, True),
        ((RUN, OTHER), (RUN, MISSING), True, False),
        ((RUN, OTHER), (RUN, OTHER), True, False),
        ((MISMATCH, AssertionError("a")), (RUN, MISSING), True, False),
        ((MISMATCH, AssertionError("a")), (MISMATCH, AssertionError("b")), False, True),
        ((MISMATCH, AssertionError("a")), (Result.SUCCESS, None), False, False),
        ((LOWER, KeyError("ours")), (LOWER, OTHER), False, False),
        ((LOWER, OTHER), (LOWER, OTHER), False, True),
        ((LOWER, KeyError("ours")), (RUN, MISSING), False, False),
        ((UNKNOWN, NAMED), (RUN, MISSING), True, True),
        ((UNKNOWN, NAMED), (Result.SUCCESS, None), True, False),
    ],
)
def test_only_the_same_failure_is_excused(ours: tuple, alone: tuple, delegated: bool, expected: bool) -> None:
    assert excused(case(*ours), case(*alone), delegated) == expected
