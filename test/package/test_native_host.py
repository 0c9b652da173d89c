# SPDX-License-Identifier: Apache-2.0
"""examples/native_host against the installed kit: by find_package and by pkg-config, in C++ and in C."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
import torch
from torch import nn

import pumice

ROOT = Path(__file__).parents[2]
BUILD, SOURCE = ROOT / "build/release", ROOT / "examples/native_host"
ONES = torch.ones(1, 16)
pytestmark = pytest.mark.skipif(not (BUILD / "libpumice.so").exists(), reason="needs ./dev build")


def run(*command: object, **environment: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [str(c) for c in command], capture_output=True, text=True, timeout=300, env=os.environ | environment
    )
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done


@pytest.fixture(scope="module")
def kit(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("kit")
    run("cmake", "--install", BUILD, "--prefix", path)
    return path


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> dict[torch.dtype, tuple[Path, list[float]]]:
    """A model in fp32 and in fp16 with what eager PyTorch computes of ones."""
    torch.manual_seed(0)
    folder, model = tmp_path_factory.mktemp("models"), nn.Linear(16, 6).eval()
    made = {}
    for dtype in (torch.float32, torch.float16):
        path = folder / f"{dtype}.pumice"
        pumice.export(model.to(dtype), (ONES.to(dtype),)).save(path)
        made[dtype] = path, model(ONES.to(dtype)).flatten().tolist()
    return made


def check(host: Path, file: tuple[Path, list[float]], **environment: str) -> None:
    path, want = file
    numbers = [float(word) for word in run(host, path, "llvmpipe", **environment).stdout.split()]
    assert numbers == pytest.approx(want, rel=2e-3, abs=2e-3)


def test_by_find_package(kit, files, tmp_path) -> None:
    run("cmake", "-S", SOURCE, "-B", tmp_path, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={kit}")
    run("cmake", "--build", tmp_path)
    for dtype in (torch.float32, torch.float16):
        check(tmp_path / "host", files[dtype])
    check(tmp_path / "host_c", files[torch.float32])
    path, _ = files[torch.float16]
    done = subprocess.run([tmp_path / "host_c", path, "llvmpipe"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and "does not fit" in done.stderr
    done = subprocess.run([tmp_path / "host", path, "GeForce 256"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "GeForce 256" in done.stderr


@pytest.mark.skipif(shutil.which("pkg-config") is None, reason="there is no pkg-config")
def test_by_pkg_config(kit, files, tmp_path) -> None:
    where = {"PKG_CONFIG_PATH": str(kit / "lib/pkgconfig")}
    assert run("pkg-config", "--modversion", "pumice", **where).stdout.strip() == pumice.__version__
    flags = run("pkg-config", "--cflags", "--libs", "pumice", **where).stdout.split()
    for compiler, name in (
        ("g++ -std=c++20 -Wall -Wextra -Werror", "host.cpp"),
        ("gcc -Wall -Wextra -Werror", "host.c"),
    ):
        run(*compiler.split(), SOURCE / name, "-o", tmp_path / "host", *flags, f"-Wl,-rpath,{kit}/lib")
        check(tmp_path / "host", files[torch.float32])


def test_a_version_that_is_not_there(kit, tmp_path) -> None:
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.20)\nproject(x CXX)\nfind_package(pumice 0.9 CONFIG REQUIRED)\n"
    )
    command = ["cmake", "-S", tmp_path, "-B", tmp_path / "b", "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={kit}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert done.returncode != 0 and f"version: {pumice.__version__}" in done.stderr
