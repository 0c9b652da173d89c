# SPDX-License-Identifier: Apache-2.0
"""CMake's presets where what they need is not there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("ndk", [None, "/nonexistent/ndk"])
def test_android_says_what_to_set(ndk: str | None, tmp_path: Path) -> None:
    environment = {**os.environ, **({"ANDROID_NDK_HOME": ndk} if ndk else {})}
    if not ndk:
        environment.pop("ANDROID_NDK_HOME", None)
    cmake = Path(sys.executable).with_name("cmake")
    done = subprocess.run(
        [cmake, "--preset", "android-arm64", "-B", tmp_path], cwd=ROOT, env=environment, capture_output=True, text=True
    )
    said = " ".join(done.stderr.split())
    assert done.returncode != 0
    assert f"Set ANDROID_NDK_HOME to the folder of an Android NDK; there is no {ndk or ''}/build/cmake/" in said
