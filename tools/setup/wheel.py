# SPDX-License-Identifier: Apache-2.0
"""`./dev wheel`: a wheel for many Linux systems and a source distribution that needs only a C++ compiler and Python."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from setup.building import build, cmake_arguments
from setup.paths import BUILD, PYTHON, ROOT, TOOLS, VENV, environment
from setup.progress import StepFailed, show

NOT_GRAFTED = ("libexecutorch*", "libqnn*", "libextension*", "libportable*", "lib_*")  # what ExecuTorch's wheel has
HEADERS = BUILD / "release/headers"  # links to those that the build uses, and to no others
GENERATED = BUILD / "release/generated"


def bundle(into: Path) -> None:
    """Copies headers and compiled shaders, not packed, of the release build: what a source distribution has besides."""
    shutil.copytree(HEADERS, into / "include", symlinks=False, ignore=shutil.ignore_patterns("zstd.h", "*.hpp.in"))
    shaders = into / "generated/glsl"
    shaders.mkdir(parents=True)
    script = [
        PYTHON,
        ROOT / "glsl/compile_shader.py",
        "--glslang",
        TOOLS / "glslang",
        "--spirv-val",
        TOOLS / "spirv-val",
    ]
    for source in (*ROOT.glob("glsl/*.glsl"), *ROOT.glob("tools/kernel_bench/glsl/*.glsl")):
        command = [*script, "--include", ROOT / "glsl/include", "--out", shaders, source]
        subprocess.run(command, check=True, env=environment())
    for left in shaders.glob("*.d"):  # names of files on this machine
        left.unlink()
    shutil.rmtree(shaders / "cache", ignore_errors=True)
    for name, made in {
        "serialization/schema_generated.h": GENERATED / "serialization/schema_generated.h",
        "python/_schema.py": ROOT / "python/pumice/format/_schema.py",
    }.items():
        (into / "generated" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(made, into / "generated" / name)


def sdist(folder: Path) -> Path:
    """Writes the source distribution into `folder`; returns its path. It is made of a copy: a build of the checkout
    that finds bundled/ would take the shaders there for its own."""
    with tempfile.TemporaryDirectory() as made:
        copy = Path(made) / "pumice"
        shutil.copytree(ROOT, copy, ignore=_left_out)
        bundle(copy / "bundled")
        code = f"import setup.build_backend as b; print(b.build_sdist({str(folder.resolve())!r}))"
        environ = environment(PYTHONPATH=f"{copy / 'tools'}:{os.environ.get('PYTHONPATH', '')}")
        command = [PYTHON, "-c", code]
        done = subprocess.run(command, cwd=copy, env=environ, check=True, stdout=subprocess.PIPE, text=True)
    return folder / done.stdout.split()[-1]


def _left_out(folder: str, names: list[str]) -> list[str]:
    """What is no source: made, downloaded, or of an editor."""
    made = {"build", "dist", "__pycache__"} if Path(folder) == ROOT else {"__pycache__"}
    return [name for name in names if name in made or (name.startswith(".") and name != ".gitignore")]


def wheel(folder: Path) -> Path:
    """Writes a wheel of this Python into `folder`, tagged for the oldest Linux that runs it; returns its path."""
    entries = [each for each in cmake_arguments("wheel") if "DRIVER_DIR" not in each] + of_release()
    settings = [f"--config-settings=cmake.define.{each[2:]}" for each in entries]
    with tempfile.TemporaryDirectory() as made:
        pip = [PYTHON, "-m", "pip", "-q", "wheel", "--no-build-isolation", "--no-deps", "-w", made, *settings, ROOT]
        show(pip, cwd=ROOT, env=environment())
        (plain,) = Path(made).glob("pumice-*.whl")
        kept = [word for pattern in NOT_GRAFTED for word in ("--exclude", pattern)]
        repair = [VENV / "bin/auditwheel", "repair", "--strip", *kept, "-w", folder, plain]
        show(repair, cwd=ROOT, env=environment())
    return newest(folder, "pumice-*manylinux*.whl")


def of_release() -> list[str]:
    """The cache entries with which CMake compiles what ccache has of the release build: ["-DNAME=value", ...]."""
    # The names by which CMake finds them: ccache does not share objects of g++ and c++, though they are one program.
    compilers = {"C": os.environ.get("CC", "cc"), "CXX": os.environ.get("CXX", "c++")}
    return ["-DPUMICE_WERROR=ON", *(f"-DCMAKE_{language}_COMPILER={name}" for language, name in compilers.items())]


def why_not_older(path: Path) -> str:
    """What auditwheel says of a wheel: the symbols that ask for the C library that its tag names."""
    done = subprocess.run(
        [VENV / "bin/auditwheel", "show", path], env=environment(), check=True, capture_output=True, text=True
    )
    return re.sub(r"\s+", " ", done.stdout).strip()


def newest(folder: Path, pattern: str) -> Path:
    """The file that was written last. Raises StepFailed where there is none."""
    found = sorted(folder.glob(pattern), key=lambda path: path.stat().st_mtime)
    if not found:
        raise StepFailed(f"there is no {pattern} in {folder}")
    return found[-1]


def make(folder: Path) -> None:
    """Both, into `folder`; prints name and size of each, and why the wheel is for no older system."""
    build()
    folder.mkdir(parents=True, exist_ok=True)
    made = [wheel(folder), sdist(folder)]
    for path in made:
        print(f"{path}: {path.stat().st_size / 1e6:.1f} MB")
    print(why_not_older(made[0]))
    sys.stdout.flush()
