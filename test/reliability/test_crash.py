# SPDX-License-Identifier: Apache-2.0
"""A process that dies, or a disk that fails, at each step of writing a file: the next start finds the old file or the
new one (ids E03, E06). test/support/crash_shim.cpp says what can happen at a step."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support.command_line import ROOT
from support.hostile import relus
from support.long_form import LONG

DEATHS, FAILURES = ["kill", "half", "power"], ["full", "io", "short"]
FEW = [(False, "half"), (True, "power"), (True, "full")]
ALL = [(old, how) for old in (False, True) for how in DEATHS + FAILURES]

SAVE = "from support import make_seeds; from pumice.format.writer import save; save(make_seeds.PROGRAMS[{!r}](), {!r})"
LOAD = "import pumice; pumice.load({!r}, cache_dir={!r}).run_flat([__import__('numpy').ones((1, 8), 'f4')])"


@pytest.fixture(scope="module")
def shim(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("shim") / "crash_shim.so"
    flags = ["-std=c++20", "-O1", "-Wall", "-Werror", "-D_GNU_SOURCE", "-shared", "-fPIC"]
    subprocess.run(["g++", *flags, ROOT / "test/support/crash_shim.cpp", "-o", path, "-ldl"], check=True)
    return path


def python(code: str, **more: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(["test", "python"]), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=environment | more, capture_output=True, text=True, timeout=120
    )


def steps(code: str, folder: Path, shim: Path) -> int:
    """How many calls of `code` change something in the folder."""
    count = folder.with_suffix(".count")
    count.unlink(missing_ok=True)
    more = {"LD_PRELOAD": str(shim), "CRASH_FOLDER": str(folder), "CRASH_COUNT": str(count), "CRASH_AT": "-1"}
    done = python(code, **more)
    assert done.returncode == 0, done.stderr
    return len(count.read_text())


def fails_at(step: int, how: str, code: str, folder: Path, shim: Path) -> subprocess.CompletedProcess[str]:
    """Runs `code`; checks that a death is one and that nothing else kills the process."""
    more = {"LD_PRELOAD": str(shim), "CRASH_FOLDER": str(folder), "CRASH_AT": str(step), "CRASH_HOW": how}
    done = python(code, **more, CRASH_COUNT=str(folder.with_suffix(".count")))
    assert (done.returncode == -signal.SIGKILL) == (how in DEATHS), f"{how} at {step}: {done.returncode} {done.stderr}"
    assert done.returncode in (0, 1, -signal.SIGKILL), done.stderr
    return done


@pytest.mark.parametrize("how", DEATHS + FAILURES)
def test_saving_a_model(how: str, tmp_path: Path, shim: Path) -> None:
    folder = tmp_path / "models"
    folder.mkdir()
    path = folder / "model.pumice"
    code = SAVE.format("linear_q4gsw", str(path))
    count = steps(code, folder, shim)
    assert count >= 4  # a temporary file, what is in it, fsync, rename
    new = path.read_bytes()
    assert python(SAVE.format("relu", str(path))).returncode == 0
    old = path.read_bytes()
    assert old != new
    for step in range(count):
        path.write_bytes(old)
        done = fails_at(step, how, code, folder, shim)
        assert path.read_bytes() in (old, new), f"{how} at {step} of {count}: a torn file"
        if how in FAILURES:
            assert path.read_bytes() == (old if done.returncode else new), f"{how} at {step}"
            assert [item.name for item in folder.iterdir()] == [path.name], f"{how} at {step}"
        for item in folder.iterdir():
            item.unlink()


@pytest.mark.parametrize(("old", "how"), ALL if LONG else FEW)
def test_the_pipeline_cache(old: bool, how: str, tmp_path: Path, shim: Path) -> None:
    """An old file is one of another driver's version: it is read, refused with a warning and replaced."""
    folder, model = tmp_path / "cache", tmp_path / "relu.pumice"
    model.write_bytes(relus(1))
    code = LOAD.format(str(model), str(folder))
    before: dict[Path, bytes] = {}
    if old:
        assert python(code).returncode == 0
        before = {item: item.read_bytes() for item in folder.iterdir()}
        file = next(item for item in before if item.name != "key")
        before[file] = before[file][:20] + b"?" + before[file][21:]

    def put_back() -> None:
        for item in folder.glob("*"):
            item.unlink()
        for item, data in before.items():
            item.write_bytes(data)
            item.chmod(0o600)

    put_back()
    count = steps(code, folder, shim)
    assert count >= (4 if old else 8)
    for step in range(count):
        put_back()
        what = f"{how} at {step} of {count}"
        done = fails_at(step, how, code, folder, shim)
        if how in FAILURES:  # it works without a cache, and says so at most once
            assert done.returncode == 0 and done.stderr.count("warning") <= 2, f"{what}: {done.stderr}"
            assert not list(folder.glob("*.tmp")), what
        is_old = old and file.read_bytes() == before[file]
        again = python(code)
        assert again.returncode == 0 and bool(again.stderr) == is_old, f"{what}: {again.stderr}"
