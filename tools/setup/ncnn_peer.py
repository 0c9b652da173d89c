# SPDX-License-Identifier: Apache-2.0
"""The program test/bench/ncnn_resnet50.cpp with the library in it, compiled from the sources that pip brings."""

from __future__ import annotations

import re
import shutil
import tarfile
import tempfile
from pathlib import Path

from setup.building import launchers
from setup.paths import BUILD, LOGS, PYTHON, ROOT, VENV, environment, locked
from setup.progress import StepFailed, run, show

REQUIREMENTS = ROOT / "third-party/source-requirements.txt"
PLACE = BUILD / "ncnn"
PROGRAMS = PLACE / "build"


def build() -> None:
    """Raises StepFailed when pip or the compiler fails."""
    requirement = REQUIREMENTS.read_text()
    with locked(PLACE.name):
        sources, stamp = PLACE / "sources", PLACE / "stamp.txt"
        if not stamp.exists() or stamp.read_text() != requirement:
            print("bench-gpu: bringing ncnn's sources, once", flush=True)
            shutil.rmtree(PLACE, ignore_errors=True)
            with tempfile.TemporaryDirectory() as folder, tarfile.open(_archive(requirement, Path(folder))) as archive:
                archive.extractall(PLACE, filter="data")
            next(PLACE.glob("ncnn-*")).rename(sources)
            stamp.write_text(requirement)
        cmake = VENV / "bin/cmake"
        version = re.search(r"==[\d.]*\.(\d+)", requirement)[1]  # which the sources take from the day of the build
        settings = [f"-DNCNN_SOURCES={sources}", f"-DNCNN_VERSION={version}", *launchers()]
        configure = [cmake, "-S", ROOT / "test/bench/ncnn", "-B", PROGRAMS, "-G", "Ninja", "--log-level=ERROR"]
        show([*configure, *settings], env=environment())
        show([cmake, "--build", PROGRAMS, "--target", "ncnn_resnet50"], env=environment())


def _archive(requirement: str, folder: Path) -> Path:
    """The archive of the sources, of which pip has compared the SHA-256 before it runs anything in it.

    Their version is the day on which they are built, so pip refuses them by version, and takes them by the address that
    it then names.
    """
    try:
        _download(requirement, folder)
    except StepFailed as error:
        name, version = re.search(r"^([\w-]+)==(\S+)", requirement, re.MULTILINE).groups()
        address = re.search(rf"\w+:/\S*/{name}-{re.escape(version)}\.tar\.gz", str(error))
        if not address:
            raise
        _download(requirement.replace(f"{name}=={version}", f"{name} @ {address[0]}"), folder)
    return next(folder.glob("*.tar.gz"))


def _download(requirement: str, folder: Path) -> None:
    wanted = folder / "requirements.txt"
    wanted.write_text(requirement)
    command = [PYTHON, "-m", "pip", "download", "--require-hashes", "--no-deps", "--no-build-isolation"]
    command += ["--no-binary", ":all:", "--progress-bar", "off", "-d", folder, "-r", wanted]
    run(command, log=LOGS / "ncnn.log")
