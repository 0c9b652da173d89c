# SPDX-License-Identifier: Apache-2.0
"""CMake where what it needs is not there: an NDK, the headers that ./dev setup brings."""

from __future__ import annotations

import os
import shutil
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


@pytest.mark.skipif(Path("/usr/include/vulkan/vulkan_core.h").exists(), reason="the system has Vulkan's headers")
@pytest.mark.parametrize("by_pip", [False, True])
def test_a_fresh_checkout_says_what_to_do(by_pip: bool, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "cmake", tmp_path / "cmake")
    shutil.copy(ROOT / "CMakeLists.txt", tmp_path)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("CMAKE_")}
    command = [Path(sys.executable).with_name("cmake"), "-S", tmp_path, "-B", tmp_path / "build", "-G", "Ninja"]
    done = subprocess.run(
        [*command, *(["-DSKBUILD=ON"] if by_pip else [])], env=environment, capture_output=True, text=True, timeout=120
    )
    said = " ".join(done.stderr.split())
    assert done.returncode != 0 and "vulkan/vulkan_core.h is missing" in said
    assert f"Run ./dev setup in {tmp_path} and try again" in said and ("(pip install .)" in said) == by_pip
