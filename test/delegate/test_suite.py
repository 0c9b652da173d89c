# SPDX-License-Identifier: Apache-2.0
"""`./dev test-executorch`: a few of the tests in ExecuTorch's wheel, and the record of what is delegated."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from support.executorch_suite import share

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
