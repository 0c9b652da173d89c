# SPDX-License-Identifier: Apache-2.0
"""Which module of the Python package imports which: no circles, at most 8 floors, and the contracts of pyproject.toml.

The floors are read from the sources: imports inside of functions and of type checking count, too.
"""

from __future__ import annotations

import ast
import functools
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "python/pumice"
FLOORS = 8
GENERATED = "_schema"  # it imports nothing of ours


def modules(package: Path) -> dict[str, Path]:
    """{"pumice.format.ir": its file}; a package is named without __init__."""
    found = {}
    for path in sorted(package.rglob("*.py")):
        if path.stem != GENERATED:
            found[".".join(path.relative_to(package.parent).with_suffix("").parts).removesuffix(".__init__")] = path
    return found


def imports(package: Path) -> dict[str, set[str]]:
    """For every module the modules of the package that it imports anywhere in its text."""
    known = modules(package)
    edges: dict[str, set[str]] = {}
    for name, path in known.items():
        targets: set[str] = set()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                targets.update(alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                assert not node.level, f"{path}: a relative import"
                targets.update(_imported(node.module, alias.name, known) for alias in node.names)
        edges[name] = {target for target in targets if target in known} - {name}
    return edges


def _imported(module: str, name: str, known: dict[str, Path]) -> str:
    """`from module import name`: a module of the package, one without a source here (_pumice), or a name in one."""
    full = f"{module}.{name}"
    return full if full in known or name.startswith("_") else module


def circles(edges: dict[str, set[str]]) -> list[list[str]]:
    """Groups of modules that import one another."""

    @functools.cache
    def below(name: str) -> frozenset[str]:
        seen, waiting = set(), [*edges[name]]
        while waiting:
            if (module := waiting.pop()) not in seen:
                seen.add(module)
                waiting += edges[module]
        return frozenset(seen)

    groups = {tuple(sorted(b for b in below(a) if a in below(b))) for a in edges if a in below(a)}
    return [list(group) for group in sorted(groups)]


def floors(edges: dict[str, set[str]]) -> dict[str, int]:
    """1 for a module that imports none of ours, else one more than the highest that it imports. Without circles."""

    @functools.cache
    def floor(name: str) -> int:
        return 1 + max(map(floor, edges[name]), default=0)

    return {name: floor(name) for name in edges}


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The package's sources, to plant something in."""
    ignored = shutil.ignore_patterns("__pycache__", "*.so")
    return Path(shutil.copytree(PACKAGE, tmp_path / "pumice", ignore=ignored))


def plant(path: Path, line: str) -> None:
    path.write_text(f"{path.read_text(encoding='utf-8')}\n{line}\n", encoding="utf-8")


def test_no_circles_and_few_floors() -> None:
    edges = imports(PACKAGE)
    assert len(edges) > 100, "the sources were not found"
    assert circles(edges) == []
    found = floors(edges)
    assert max(found.values()) <= FLOORS, [name for name, floor in found.items() if floor > FLOORS]


@pytest.mark.parametrize(
    "line",
    [
        "from pumice.lowering import lower",
        "if TYPE_CHECKING:\n    from pumice.lowering.lower import lower",
        "def f():\n    import pumice.lowering.selection",
    ],
)
def test_a_planted_circle_is_found(copy, line) -> None:
    plant(copy / "lowering/ref.py", line)
    (group,) = circles(imports(copy))
    assert "pumice.lowering.ref" in group and "pumice.lowering.selection" in group


def test_a_planted_floor_is_found(copy) -> None:
    below = "residual"
    for name in ("higher", "highest"):
        (copy / f"fusion/{name}.py").write_text(f"from pumice.fusion import {below}\n")
        below = name
    found = floors(imports(copy))
    assert found["pumice.fusion.highest"] == found["pumice.fusion.residual"] + 2 == max(found.values()) > FLOORS


def contracts(python: Path) -> subprocess.CompletedProcess:
    command = [Path(sys.executable).with_name("lint-imports"), "--no-cache", "--config", ROOT / "pyproject.toml"]
    environment = {"PYTHONPATH": str(python), "PATH": ""}
    return subprocess.run(command, cwd=python, env=environment, capture_output=True, text=True, check=False)


def test_the_contracts_hold() -> None:
    done = contracts(PACKAGE.parent)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("file", "line", "told"),
    [
        ("lowering/ref.py", "import pumice.ops.conv2d", "pumice.lowering is not allowed to import pumice.ops"),
        ("runtime/nesting.py", "def f():\n    import torch", "pumice.runtime is not allowed to import torch"),
    ],
)
def test_a_planted_import_breaks_a_contract(copy, file, line, told) -> None:
    plant(copy / file, line)
    done = contracts(copy.parent)
    assert done.returncode == 1 and told in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("package", ["pumice", "pumice.executorch"])
def test_the_stub_of_a_package_that_loads_on_first_use_names_what_the_package_does(package) -> None:
    path = PACKAGE.parent.joinpath(*package.split("."), "__init__.py")
    listed = next(
        ast.literal_eval(node.value)
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.Assign) and node.targets[0].id == "__all__"
    )
    stub = ast.parse(path.with_suffix(".pyi").read_text(encoding="utf-8"))
    imported = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
    names = {alias.asname: (node.module, alias.name) for node in imported for alias in node.names}
    assert sorted(names) == sorted(listed)
    for module, name in names.values():
        text = ast.parse(modules(PACKAGE)[module].read_text(encoding="utf-8"))
        assert name in {node.name for node in text.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
