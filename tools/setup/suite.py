# SPDX-License-Identifier: Apache-2.0
"""Packages that only one command needs, installed once in a folder that nothing else uses."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from setup.install import (
    BROWSER_REQUIREMENTS,
    PEER_REQUIREMENTS,
    SITE_REQUIREMENTS,
    SUITE_REQUIREMENTS,
    pip_install,
)
from setup.paths import BUILD, LOGS, PYTHON, environment, locked
from setup.progress import StepFailed

SUITE = BUILD / "suite-packages"
PEERS = BUILD / "peer-packages"
SITE = BUILD / "site-packages"
BROWSER = BUILD / "browser-packages"


def install() -> Path | None:
    """What `./dev test-executorch` needs: the folder for PYTHONPATH. None, with a message, when pip fails: then the
    models are skipped."""
    try:
        if _install(SUITE_REQUIREMENTS, SUITE, "test-executorch: bringing torchvision and torchaudio, once"):
            _without_cuda()
    except StepFailed as error:
        print(f"test-executorch: the suite's models are skipped, their packages cannot be had: {error}", flush=True)
        return None
    return SUITE


def peers() -> Path:
    """What writes the files of what `./dev bench-gpu` measures beside Pumice: the folder for PYTHONPATH. Raises
    StepFailed when pip fails."""
    _install(PEER_REQUIREMENTS, PEERS, "bench-gpu: bringing gguf, once")
    return PEERS


def site() -> Path:
    """MkDocs, for `./dev site`: the folder for PYTHONPATH. Raises StepFailed when pip fails."""
    _install(SITE_REQUIREMENTS, SITE, "site: bringing MkDocs, once")
    return SITE


def browser() -> Path:
    """What `./dev test-browser` drives a browser with, and what opens traces and graphs in it: the folder for
    PYTHONPATH. Raises StepFailed when pip fails."""
    _install(BROWSER_REQUIREMENTS, BROWSER, "test-browser: bringing Playwright, Perfetto and Model Explorer, once")
    return BROWSER


def _install(requirements: Path, place: Path, what: str) -> bool:
    """Whether there was anything to do."""
    recipe = f"{requirements.read_text()}{sys.version}\n"
    stamp = place / "stamp.txt"
    with locked(place.name):
        if stamp.exists() and stamp.read_text() == recipe:
            return False
        print(what, flush=True)
        shutil.rmtree(place, ignore_errors=True)
        pip_install(requirements, LOGS / f"{place.name}.log", "--target", place)
        stamp.write_text(recipe)
    return True


def _without_cuda() -> None:
    """PyPI's torchaudio has C++ code for CUDA's libraries only: it imports without that code, but not with one that
    does not load."""
    command = [PYTHON, "-c", "import torchaudio"]
    if subprocess.run(command, env=environment(PYTHONPATH=str(SUITE)), capture_output=True, check=False).returncode:
        for library in (SUITE / "torchaudio/lib").glob("*.so"):
            library.unlink()
