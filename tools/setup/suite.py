# SPDX-License-Identifier: Apache-2.0
"""The packages that only `./dev test-executorch` needs, installed once in a folder that nothing else uses."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from setup.install import SUITE_REQUIREMENTS as REQUIREMENTS
from setup.install import pip_install
from setup.paths import BUILD, LOGS, PYTHON, environment, locked
from setup.progress import StepFailed

PLACE = BUILD / "suite-packages"


def install() -> Path | None:
    """The folder for PYTHONPATH. None, with a message, when pip fails: then the models are skipped."""
    recipe = f"{REQUIREMENTS.read_text()}{sys.version}\n"
    stamp = PLACE / "stamp.txt"
    with locked("suite"):
        if stamp.exists() and stamp.read_text() == recipe:
            return PLACE
        print("test-executorch: bringing torchvision and torchaudio, once", flush=True)
        shutil.rmtree(PLACE, ignore_errors=True)
        try:
            pip_install(REQUIREMENTS, LOGS / "suite.log", "--target", PLACE)
        except StepFailed as error:
            print(f"test-executorch: the suite's models are skipped, their packages cannot be had: {error}", flush=True)
            return None
        _without_cuda()
        stamp.write_text(recipe)
    return PLACE


def _without_cuda() -> None:
    """PyPI's torchaudio has C++ code for CUDA's libraries only: it imports without that code, but not with one that
    does not load."""
    command = [PYTHON, "-c", "import torchaudio"]
    if subprocess.run(command, env=environment(PYTHONPATH=str(PLACE)), capture_output=True, check=False).returncode:
        for library in (PLACE / "torchaudio/lib").glob("*.so"):
            library.unlink()
