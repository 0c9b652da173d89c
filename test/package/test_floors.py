# SPDX-License-Identifier: Apache-2.0
"""The floors of the C++ code: each folder includes only what stands above it in FLOORS, and the libraries of
CMakeLists.txt are linked in the same order. Read from the sources, so that the drawing in docs/ cannot lie."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FLOORS = ["base", "serialization", "glsl", "vulkan", "graph", "ops", "runtime", "tools", "python", "examples"]
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
SOURCES = ("*.h", "*.hpp", "*.cpp")
PUBLIC = "pumice/"  # runtime/include/pumice: what hosts include
GENERATED = {"serialization/schema_generated.h"}


def sources(root: Path, folder: str) -> list[Path]:
    return sorted(path for pattern in SOURCES for path in (root / folder).rglob(pattern))


def floor_of(include: str) -> str | None:
    if include.startswith(PUBLIC):
        return "runtime"
    folder = include.split("/")[0]
    return folder if folder in FLOORS and "/" in include else None


def upward(root: Path) -> list[str]:
    """Includes of a folder that stands further down in FLOORS."""
    found = []
    for number, folder in enumerate(FLOORS):
        for path in sources(root, folder):
            for include in INCLUDE.findall(path.read_text(encoding="utf-8")):
                floor = floor_of(include)
                if floor is not None and FLOORS.index(floor) > number:
                    found.append(f"{path.relative_to(root)} includes {include}")
    return found


def without_header(root: Path) -> list[str]:
    """Source files without a header of their name; operators have a table row instead, programs a main."""
    free = ("ops", "tools/pumice-rt", "python")
    found = []
    for folder in FLOORS[: FLOORS.index("python")]:
        for path in sources(root, folder):
            name = path.relative_to(root)
            if path.suffix == ".cpp" and str(name.parent) not in free and not path.with_suffix(".h").exists():
                found.append(str(name))
    return found


def test_includes_go_one_way() -> None:
    assert not upward(ROOT)


def test_every_source_file_has_its_header() -> None:
    assert not without_header(ROOT)


def test_every_include_exists() -> None:
    """A path is written from the top of the tree, or it is generated (glsl/STEM.h, the schema)."""
    missing = []
    for folder in FLOORS:
        for path in sources(ROOT, folder):
            for include in INCLUDE.findall(path.read_text(encoding="utf-8")):
                if floor_of(include) is None or include in GENERATED or include.startswith(PUBLIC):
                    continue
                made = re.fullmatch(r"glsl/(\w+)\.h", include)
                shaders = [ROOT / "glsl", ROOT / "tools/kernel_bench/glsl"]
                if made and any((shader / f"{made[1]}.glsl").exists() for shader in shaders):
                    continue
                if not (ROOT / include).exists():
                    missing.append(f"{path.relative_to(ROOT)} includes {include}")
    assert not missing


@pytest.mark.parametrize(
    ("file", "include"),
    [("graph/plan.h", "ops/op.h"), ("base/error.h", "vulkan/device.h"), ("vulkan/memory.cpp", "graph/graph.h")],
)
def test_a_planted_include_is_found(tmp_path: Path, file: str, include: str) -> None:
    shutil.copytree(ROOT / Path(file).parts[0], tmp_path / Path(file).parts[0])
    path = tmp_path / file
    path.write_text(f'#include "{include}"\n' + path.read_text(encoding="utf-8"), encoding="utf-8")
    assert upward(tmp_path) == [f"{file} includes {include}"]


def test_a_planted_source_without_header_is_found(tmp_path: Path) -> None:
    (tmp_path / "graph").mkdir()
    (tmp_path / "graph/lonely.cpp").write_text("int lonely() { return 1; }\n")
    assert without_header(tmp_path) == ["graph/lonely.cpp"]
