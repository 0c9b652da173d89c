# SPDX-License-Identifier: Apache-2.0
"""Registering the backend: once, quietly, with the right ExecuTorch only."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

import pumice
from pumice.executorch.plugin import check_version, register

IMPORT = "import pumice.executorch; from executorch.runtime import Runtime; r = Runtime.get().backend_registry\n"


def python(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "ignore", "-c", code]
    return subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, timeout=300)


def test_import_registers_quietly_and_twice() -> None:
    code = (
        "import pumice.executorch.plugin as p; p.register(); print(r.registered_backend_names.count('PumiceBackend'))\n"
    )
    done = python(IMPORT + code + "print(r.is_available('PumiceBackend'))")
    assert done.stdout.split() == ["1", "True"], done.stderr
    assert "Pumice" not in done.stderr
    register()
    register()


def test_without_a_driver_it_is_not_available_and_says_why() -> None:
    done = python(
        IMPORT + "print(r.is_available('PumiceBackend'))",
        VK_DRIVER_FILES="/nowhere.json",
        PUMICE_VULKAN_LOADER="/nowhere.so",
    )
    assert done.returncode == 0 and done.stdout.split() == ["False"], done.stderr
    assert "PumiceBackend: no Vulkan device" in done.stderr


@pytest.mark.parametrize("version", ["1.4.1", "1.6.0+cpu", "2.0", None])
def test_another_version_is_refused_with_the_right_one(version) -> None:
    with pytest.raises(pumice.Error, match=r"pumice.executorch needs ExecuTorch 1\.5"):
        check_version(version)
