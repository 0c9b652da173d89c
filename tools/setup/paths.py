# SPDX-License-Identifier: Apache-2.0
"""Where things are, and the variables that programs of the project run with."""

from __future__ import annotations

import fcntl
import os
import shutil
import sysconfig
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
VENV = ROOT / ".venv"
PYTHON = VENV / "bin/python"
BUILD = ROOT / "build"
PREFIX = BUILD / "prefix"
LOGS = BUILD / "logs"
JUNIT = BUILD / "junit"
TOOLS = PREFIX / "tools/bin"
DRIVER = PREFIX / "drv"
LAYERS = PREFIX / "val/layers"
PYDEV = PREFIX / "pydev/usr/include"


def variables() -> dict[str, str]:
    """What `./dev` sets for every program it starts. What the user has set already stays."""
    result = {
        "VIRTUAL_ENV": str(VENV),
        "PATH": f"{VENV}/bin:{TOOLS}:{os.environ.get('PATH', '/usr/bin:/bin')}",
        "VK_DRIVER_FILES": str(DRIVER / "lvp_icd.json"),
        "VK_LAYER_PATH": str(LAYERS),
        "MESA_SHADER_CACHE_DIR": str(BUILD / "mesa-cache"),
        "CCACHE_DIR": str(BUILD / "ccache"),
        "CCACHE_BASEDIR": str(ROOT),  # build folders of equal depth and flags share their objects
        "CCACHE_SLOPPINESS": "pch_defines,time_macros",  # without it nothing with a precompiled header is kept
        "PUMICE_SHADER_CACHE": str(BUILD / "shaders"),
        "HF_HUB_OFFLINE": "1",
    }
    for name in list(result):
        if name not in ("VIRTUAL_ENV", "PATH") and os.environ.get(name):
            result[name] = os.environ[name]
    if os.environ.get("PATH", "").startswith(f"{VENV}/bin:{TOOLS}:"):
        result["PATH"] = os.environ["PATH"]
    if not has_python_headers() and PYDEV.exists():  # Debian's pyconfig.h is found through this folder
        result["CPLUS_INCLUDE_PATH"] = ":".join(filter(None, [str(PYDEV), os.environ.get("CPLUS_INCLUDE_PATH")]))
    return result


def environment(**more: str) -> dict[str, str]:
    result = {**os.environ, **variables(), **more}
    result.pop("PYTHONHOME", None)
    result.pop("PYTHONDONTWRITEBYTECODE", None)  # set-up left byte code to the first use: torch is compiled once
    return result


def has_python_headers() -> bool:
    return (Path(sysconfig.get_path("include")) / "Python.h").exists()


def launcher() -> list[str]:
    """What a program that opens the driver must be started with: nothing, unless the driver has its own C library."""
    run = DRIVER / "run"
    return [str(run)] if run.exists() and Path(variables()["VK_DRIVER_FILES"]).parent == DRIVER else []


def ccache() -> str | None:
    private = PREFIX / "ccache/usr/bin/ccache"
    return shutil.which("ccache") or (str(private) if private.exists() else None)


@contextmanager
def locked(name: str):
    """Let one `./dev` at a time do something to this checkout."""
    BUILD.mkdir(exist_ok=True)
    with (BUILD / f".{name}.lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"dev: waiting for another ./dev that works on {name}", flush=True)
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
