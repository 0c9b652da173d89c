# SPDX-License-Identifier: Apache-2.0
"""The floors of the C++ code: each folder includes only what stands above it in FLOORS, and the libraries of
CMakeLists.txt are linked in the same order. Read from the sources, so that the drawing in docs/ cannot lie."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docs"))
from draw_floors import FLOORS as DRAWN  # noqa: E402 (docs is no package)
from draw_floors import INCLUDE, PUBLIC, draw, floor_of, sources  # noqa: E402

FLOORS = list(DRAWN)
GENERATED = {"serialization/schema_generated.h"}


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
    """Source files of the engine without a header of their name, in their folder or among the public ones; operators
    have a table row instead, programs a main."""
    free = ("ops", "tools/pumice-rt", "python")
    found = []
    for folder in FLOORS[: FLOORS.index("python")]:
        for path in sources(root, folder):
            name = path.relative_to(root)
            public = root / "runtime/include/pumice" / f"{path.stem}.h"
            has_header = path.with_suffix(".h").exists() or (name.parts[0] == "runtime" and public.exists())
            if path.suffix == ".cpp" and str(name.parent) not in free and not has_header:
                found.append(str(name))
    return found


FUNCTION = re.compile(
    r"^(?!using|typedef|struct|class|enum|inline|constexpr|template|static|#|friend|\s|\}|extern)"
    r"[^\n;{}]*?\b(\w+)\((?:[^;{}]|\{\})*?\)(?: noexcept)?(?: PUMICE_PRINTF\([^)]*\))?;",
    re.MULTILINE,
)


def implemented_elsewhere(root: Path) -> list[str]:
    """Functions that a header declares and the source file of its name does not define, on the lower floors."""
    found = []
    for folder in FLOORS[: FLOORS.index("ops")]:
        for path in sources(root, folder):
            if path.suffix != ".h":
                continue
            source = path.with_suffix(".cpp")
            body = source.read_text(encoding="utf-8") if source.exists() else ""
            header = re.sub(r"//[^\n]*", "", path.read_text(encoding="utf-8"))
            for name in FUNCTION.findall(header):
                if not re.search(rf"^[^\s/#][^\n]*\b{name}\(", body, re.MULTILINE):
                    found.append(f"{path.relative_to(root)} declares {name}")
    return found


def test_includes_go_one_way() -> None:
    assert not upward(ROOT)


def test_the_drawing_is_that_of_the_sources() -> None:
    drawing = (ROOT / "docs/floors.svg").read_text(encoding="utf-8")
    assert drawing == draw(ROOT), "run python docs/draw_floors.py docs/floors.svg"


def test_every_source_file_has_its_header() -> None:
    assert not without_header(ROOT)


def test_a_header_is_implemented_by_the_file_of_its_name() -> None:
    assert not implemented_elsewhere(ROOT)


def test_every_include_exists() -> None:
    """A path is written from the top of the tree, or it is generated (glsl/STEM.h, the schema)."""
    missing = []
    for folder in FLOORS:
        for path in sources(ROOT, folder):
            for include in INCLUDE.findall(path.read_text(encoding="utf-8")):
                if floor_of(include) is None or include in GENERATED or include.startswith(PUBLIC):
                    continue
                generated = re.fullmatch(r"glsl/(\w+)\.h", include)
                shaders = [ROOT / "glsl", ROOT / "tools/kernel_bench/glsl"]
                if generated and any((shader / f"{generated[1]}.glsl").exists() for shader in shaders):
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


def test_a_planted_function_of_another_file_is_found(tmp_path: Path) -> None:
    (tmp_path / "graph").mkdir()
    (tmp_path / "graph/one.h").write_text(
        "int first(int a);\ninline int second() { return 2; }\nint third(\n    int a);\n"
    )
    (tmp_path / "graph/one.cpp").write_text("int first(int a) { return a; }\n")
    (tmp_path / "graph/two.cpp").write_text("int third(int a) { return a; }\n")
    assert implemented_elsewhere(tmp_path) == ["graph/one.h declares third"]
