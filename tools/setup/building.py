# SPDX-License-Identifier: Apache-2.0
"""Configure and build with CMake's presets, in this checkout's own environment."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from setup.paths import (
    BUILD,
    DRIVER,
    PREFIX,
    PYDEV,
    PYTHON,
    ROOT,
    TOOLS,
    VENV,
    ccache,
    environment,
    has_python_headers,
    launcher,
    locked,
)
from setup.progress import StepFailed, show

IN_PLACE = "release"  # the preset whose extension module `import pumice` uses
SANITIZED = "asan-ubsan"  # the one with the fuzz targets, made by clang
ARM, EMULATED = "aarch64-linux", "aarch64-emulated"  # 64-bit Arm; quickly, for an emulator
COVERAGE = "coverage"  # the fuzz targets again, which count the lines that they reach


def cmake_arguments(preset: str) -> list[str]:
    """The cache entries that tell CMake where set-up put things: ["-DNAME=value", ...]."""
    site = next(VENV.glob("lib/python3*/site-packages"), None)
    if site is None:
        raise StepFailed("there is no .venv: run ./dev setup")
    entries = {
        "CMAKE_PREFIX_PATH": f"{PREFIX / 'hdr/usr'};{VENV};{site / 'pybind11'}",
        "PUMICE_GLSLANG": TOOLS / "glslang",
        "PUMICE_SPIRV_VAL": TOOLS / "spirv-val",
        "PUMICE_FLATC": site / "flatc/bin/flatc",
        "PUMICE_DEV_DRIVER_DIR": DRIVER,
        "Python_EXECUTABLE": PYTHON,
        "PUMICE_DEV_INPLACE": "ON" if preset == IN_PLACE else "OFF",
    }
    if not has_python_headers() and PYDEV.exists():
        entries["Python_INCLUDE_DIR"] = next(PYDEV.glob("python3.*"))
    if preset in (SANITIZED, COVERAGE):
        entries["CMAKE_C_COMPILER"], entries["CMAKE_CXX_COMPILER"] = clang()
    if preset in (ARM, EMULATED) and not shutil.which("aarch64-linux-gnu-g++"):
        for key, tool in (("C", "gcc"), ("CXX", "g++")):
            entries[f"CMAKE_{key}_COMPILER"] = PREFIX / f"cross/wrap/aarch64-linux-gnu-{tool}"
    if launcher() and preset in ("release", "debug"):
        entries["CMAKE_TEST_LAUNCHER"] = launcher()[0]
    return [*(f"-D{key}={value}" for key, value in entries.items()), *launchers()]


def launchers() -> list[str]:
    cache = ccache()
    return [f"-DCMAKE_{language}_COMPILER_LAUNCHER={cache}" for language in ("C", "CXX")] if cache else []


def clang() -> tuple[str, str]:
    """The C and C++ compiler with libFuzzer: the system's, or the one that set-up installed."""
    if shutil.which("clang") and shutil.which("clang++") and not (PREFIX / "clang").exists():
        return shutil.which("clang"), shutil.which("clang++")
    return str(PREFIX / "clang/wrap/clang"), str(PREFIX / "clang/wrap/clang++")


def llvm_tool(name: str) -> Path:
    """A tool of clang's own version: the one beside it. Raises StepFailed where there is none."""
    tool = Path(clang()[0]).resolve().parent / name
    if not tool.exists():
        raise StepFailed(f"there is no {tool}: install the package llvm of clang's version")
    return tool


def _fingerprint(arguments: list[str]) -> str:
    """Changes when the next build must be configured from nothing: other arguments, another prefix, other presets."""
    stamps = [path.read_text() for path in sorted(PREFIX.glob("*/stamp.json"))]
    stamps.append((VENV / "pumice-stamp.json").read_text() if (VENV / "pumice-stamp.json").exists() else "")
    stamps.append((ROOT / "CMakePresets.json").read_text())
    return hashlib.sha256(json.dumps([arguments, stamps]).encode()).hexdigest()


def build(preset: str = IN_PLACE, targets: Sequence[str] = (), jobs: int = 0) -> Path:
    """Build one preset, all of it or `targets`; returns its folder. Raises StepFailed when a command fails."""
    if not (ROOT / "CMakeLists.txt").exists():
        raise StepFailed("there is no CMakeLists.txt to build from")
    folder, cmake = BUILD / preset, VENV / "bin/cmake"
    arguments = cmake_arguments(preset)
    fingerprint, mark = _fingerprint(arguments), folder / "dev-arguments"
    with locked(preset):
        if not (folder / "build.ninja").exists() or not mark.exists() or mark.read_text() != fingerprint:
            mark.unlink(missing_ok=True)
            show([cmake, "--fresh", "--preset", preset, *arguments], cwd=ROOT, env=environment())
            mark.write_text(fingerprint)
        wanted = ["--target", *targets] if targets else []
        jobs = jobs or len(os.sched_getaffinity(0))
        show([cmake, "--build", folder, "-j", str(jobs), *wanted], cwd=ROOT, env=environment())
        if preset == IN_PLACE:
            _link_tool(folder)
    return folder


def _link_tool(folder: Path) -> None:
    """Put the stand-alone runner on the PATH of `./dev shell`."""
    tool = next((p for p in (*folder.glob("pumice-rt"), *folder.glob("*/pumice-rt")) if p.is_file()), None)
    link = VENV / "bin/pumice-rt"
    if tool and not (link.is_symlink() and link.resolve() == tool.resolve()) and not (link.exists() and tool == link):
        link.unlink(missing_ok=True)
        link.symlink_to(tool)
