# SPDX-License-Identifier: Apache-2.0
"""Adding an operator is four new files and no edit: `toy/` is added to a copy of the tree, which is built and used."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOY = Path(__file__).parent / "toy"
ADDED = {
    "ops/spread.cpp": "spread.cpp",
    "glsl/spread.glsl": "spread.glsl",
    "python/pumice/ops/spread.py": "spread.py",
    "test/ops/test_spread.py": "case_spread.py",
}
OP = ("--op", "spread", "--json")


def tracked() -> list[str]:
    """The names of the files in git, and of new ones that git does not ignore."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
    return [name for name in names if name and (ROOT / name).is_file()]


def files(tree: Path) -> dict[str, bytes]:
    """The tree's files by name, without what a build makes."""
    generated = {"docs/ops.md", "python/pumice/format/_schema.py"}
    found = {}
    for path in tree.rglob("*"):
        name = path.relative_to(tree)
        skipped = name.parts[0] in ("build", ".venv") or path.suffix in (".pyc", ".so") or ".pytest_cache" in name.parts
        if path.is_file() and not skipped and str(name) not in generated:
            found[str(name)] = path.read_bytes()
    return found


def difference(before: dict[str, bytes], after: dict[str, bytes]) -> tuple[list[str], list[str]]:
    """The names of files that are new, and of those that were changed or removed."""
    return sorted(set(after) - set(before)), sorted(name for name in before if after.get(name) != before[name])


def environment(tree: Path) -> dict[str, str]:
    """As ./dev sets it, for the copy; objects and SPIR-V of equal sources come from this checkout's caches."""
    sys.path.insert(0, str(ROOT / "tools"))
    from setup import paths

    more = {"CCACHE_BASEDIR": str(tree), "PYTHONPATH": str(tree / "python"), "PUMICE_DEVICE": "llvmpipe"}
    return paths.environment() | more


def build(tree: Path) -> None:
    sys.path.insert(0, str(ROOT / "tools"))
    from setup import building, paths

    (tree / ".venv").symlink_to(ROOT / ".venv")
    (tree / "build").mkdir()
    (tree / "build/prefix").symlink_to(paths.PREFIX)
    arguments = [argument.replace(str(ROOT), str(tree)) for argument in building.cmake_arguments("release")]
    cmake, folder = ROOT / ".venv/bin/cmake", tree / "build/release"
    left_out = ["-DPUMICE_TESTS=OFF", "-DPUMICE_EXECUTORCH=OFF"]
    jobs = str(len(os.sched_getaffinity(0)))
    for command in (
        [cmake, "--preset", "release", *arguments, *left_out],
        [cmake, "--build", folder, "-j", jobs, "--target", "_pumice", "pumice-rt", "pumice_docs"],
    ):
        run(tree, *command)


def run(tree: Path, *command: object) -> str:
    done = subprocess.run(
        [str(word) for word in command], cwd=tree, env=environment(tree), capture_output=True, text=True, timeout=1500
    )
    assert done.returncode == 0, f"{command}: {done.returncode}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def tree(tmp_path_factory) -> Path:
    if not (ROOT / ".git").exists():
        pytest.skip("no git checkout, which says what belongs to the tree")
    tree = tmp_path_factory.mktemp("adding") / "tree"
    for name in tracked():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, tree / name)
    for name, source in ADDED.items():
        assert not (tree / name).exists(), f"{name} is there already"
        shutil.copyfile(TOY / source, tree / name)
    build(tree)
    return tree


pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]


def test_it_runs_from_export_to_session(tree: Path) -> None:
    said = run(
        tree, ROOT / ".venv/bin/python", "-m", "pytest", "-q", "-p", "no:cacheprovider", "test/ops/test_spread.py"
    )
    assert "2 passed" in said


def test_the_kernel_tool_lists_tests_and_times_it(tree: Path) -> None:
    tool = (tree / "build/release/bin/pumice-rt", "kernel")
    (row,) = json.loads(run(tree, *tool, "list", *OP))["operators"]
    assert row["shader"] == "spread" and len(row["cases"]) == 6 and row["compared"] == "fp64 reference"
    rows = json.loads(run(tree, *tool, "test", *OP))["rows"]
    assert [(each["status"], each["compared"]) for each in rows] == [("ok", "fp64 reference")] * 6
    (row,) = json.loads(run(tree, *tool, "bench", *OP, "--seconds", "0.01", "--no-ceilings"))["rows"]
    assert row["status"] == "ok" and row["median_us"] > 0
    assert row["bytes"] == 2 * (512 * 512 + 512) and row["flops"] == 2 * 512 * 512


def test_it_is_in_the_docs(tree: Path) -> None:
    page = (tree / "docs/ops.md").read_text(encoding="utf-8")
    assert "| `spread` | `pumice_toy.spread.default` |" in page
    assert "| `spread` | `Tensor x, float scale -> Tensor` | f32 f16 |  |  |  |" in page


PLANTS = {  # what the shader of the copy then does wrong, and whether the kernel tool's guards and patterns find it
    "reads": ("high = max(high, LOAD1(DTYPE, x_, params.rows * params.width));", True),
    "reads and forgets": ("if (LOAD1(DTYPE, x_, params.rows * params.width) == 7.25) low = 0;", False),
    "writes": ("STORE4(DTYPE, out_, (params.rows + 3u) / 4u, vec4(low));", True),
}


@pytest.mark.parametrize("plant", PLANTS)
def test_an_access_past_a_tensor_is_found(tree: Path, plant: str) -> None:
    """By the kernel tool's guards and two fill patterns, which stand around what it binds; by the validation layer in
    the session that runs after them, where the value read goes nowhere."""
    line, found = PLANTS[plant]
    shader, tool = tree / "glsl/spread.glsl", tree / "build/release/bin/pumice-rt"
    before = shader.read_text()
    try:
        shader.write_text(before.replace("  return params.scale", f"  {line}\n  return params.scale"))
        run(tree, ROOT / ".venv/bin/cmake", "--build", tree / "build/release", "--target", "pumice-rt")
        command = [tool, "kernel", "test", *OP, "--case", "x=T[8,16] scale=2 -> T[8]"]
        done = subprocess.run(command, env=environment(tree), capture_output=True, text=True, timeout=300)
        rows = json.loads(done.stdout)["rows"]
        assert [row["status"] for row in rows] == [("failed" if found else "ok")] * 2, rows
        log = tree / "build/bounds.log"
        log.unlink(missing_ok=True)
        more = {"PUMICE_VALIDATE": "bounds", "PUMICE_FEATURES": "-robust", "PUMICE_VALIDATE_LOG": str(log)}
        subprocess.run(command, env=environment(tree) | more, capture_output=True, text=True, timeout=300)
        said = [each for each in log.read_text().splitlines() if " message " in each]
        assert bool(said) != found and all("OOB" in each or "VUID" in each for each in said), said
    finally:
        shader.write_text(before)


def test_four_files_are_new_and_none_is_changed(tree: Path) -> None:
    added, changed = difference({name: (ROOT / name).read_bytes() for name in tracked()}, files(tree))
    assert len(ADDED) == 4 and added == sorted(ADDED)
    assert changed == []
