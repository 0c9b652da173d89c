# SPDX-License-Identifier: Apache-2.0
"""Draws docs/floors.svg: the folders of the engine and the packages of python/pumice, each above what it uses.

The arrows of the folders are read from the #include lines, the floors of the packages from the contract of
import-linter in pyproject.toml. A test holds the drawing against both: draw_floors.py FILE
"""

from __future__ import annotations

import re
import sys
import tomllib
from html import escape
from pathlib import Path

ROOT = Path(__file__).parents[1]
# From the ground floor up. A folder includes only what stands before it.
FLOORS = {
    "base": "errors, log, checked arithmetic, dtypes, threads",
    "serialization": "the .pumice file: read, verified, written",
    "glsl": "kernels, their headers and their compiler",
    "vulkan": "device, memory, pipelines, commands",
    "graph": "tensors, nodes, plan, prepack, encode, execute",
    "ops": "an operator a file: check once, then shapes to launch",
    "runtime": "model, sessions, C and C++ interface, ExecuTorch",
    "tools": "pumice-rt, kernel_bench, set-up",
    "python": "the extension module (bindings)",
    "examples": "demos and hosts",
}
PACKAGES = {
    "errors": "typed errors",
    "format": "intermediate representation, writer, dtypes",
    "runtime": "session, nesting, devices",
    "quantizer": "torchao's quantize_",
    "lowering": "graph in, operator calls out",
    "ops": "a lowering for each ATen operator",
    "fusion": "patterns of several nodes",
    "passes": "normalise, place storage",
    "partition": "which nodes run on the device",
    "executorch": "partitioner and backend",
    "dynamo": "pumice.compile, a backend of torch.compile",
    "exporter": "pumice.export",
    "llm": "language models: export, load, generate",
    "cli": "the command pumice",
}
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
SOURCES = ("*.h", "*.hpp", "*.cpp")
PUBLIC = "pumice/"  # runtime/include/pumice: what hosts include
WIDTH, HEIGHT, GAP, LANE = 430, 46, 14, 12


def sources(root: Path, folder: str) -> list[Path]:
    """The C++ files of a folder, in order."""
    return sorted(path for pattern in SOURCES for path in (root / folder).rglob(pattern))


def floor_of(include: str) -> str | None:
    """The folder of FLOORS that an include names, or None for a header from outside."""
    if include.startswith(PUBLIC):
        return "runtime"
    folder = include.split("/")[0]
    return folder if folder in FLOORS and "/" in include else None


def uses(root: Path, folder: str) -> set[str]:
    """The other folders that the files of `folder` include."""
    found = {
        floor_of(include)
        for path in sources(root, folder)
        for include in INCLUDE.findall(path.read_text(encoding="utf-8"))
    }
    return {floor for floor in found if floor is not None and floor != folder}


def direct(root: Path) -> dict[str, list[str]]:
    """What each folder uses, without what it reaches through another one: few arrows say all."""
    edges = {folder: uses(root, folder) for folder in FLOORS}

    def reached(folder: str) -> set[str]:
        return edges[folder].union(*(reached(other) for other in edges[folder]))

    return {
        folder: sorted(to for to in edges[folder] if not any(to in reached(via) for via in edges[folder] - {to}))
        for folder in FLOORS
    }


def layers(root: Path) -> list[list[str]]:
    """The packages of python/pumice from the ground floor up, those of one floor side by side."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    contract = next(c for c in project["tool"]["importlinter"]["contracts"] if c["type"] == "layers")
    return [[name.strip().removeprefix("pumice.") for name in row.split("|")] for row in reversed(contract["layers"])]


def _box(x: float, y: float, width: float, name: str, text: str) -> str:
    return (
        f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{HEIGHT}" rx="6"/>'
        f'<text x="{x + 12:g}" y="{y + 19:g}" class="name">{escape(name)}</text>'
        f'<text x="{x + 12:g}" y="{y + 36:g}">{escape(text)}</text>'
    )


def _arrow(left: float, lane: int, start: float, end: float) -> str:
    x = left - 10 - LANE * lane
    return f'<path d="M{left:g} {start:g} H{x:g} V{end:g} H{left - 3:g}" marker-end="url(#head)"/>'


def draw(root: Path) -> str:
    """The drawing as SVG text."""
    step, top, left = HEIGHT + GAP, 44, 120
    height = top + step * len(FLOORS) + 10
    y = {folder: top + step * (len(FLOORS) - 1 - i) for i, folder in enumerate(FLOORS)}
    parts = [_box(left, y[folder], WIDTH, f"{folder}/", text) for folder, text in FLOORS.items()]
    arrows = [(folder, to) for folder, found in direct(root).items() for to in found]
    for lane, (folder, to) in enumerate(sorted(arrows, key=lambda a: y[a[1]] - y[a[0]])):
        parts.append(_arrow(left, lane % 9, y[folder] + 14, y[to] + HEIGHT - 14))
    right = left + WIDTH + 40
    for i, row in enumerate(layers(root)):
        share = (WIDTH - GAP * (len(row) - 1)) / len(row)
        for j, name in enumerate(row):
            parts.append(_box(right + j * (share + GAP), height - 10 - step * (i + 1), share, name, PACKAGES[name]))
    title = (
        f'<text x="{left}" y="24" class="name">the engine (C++, GLSL)</text>'
        f'<text x="{right}" y="24" class="name">python/pumice</text>'
    )
    style = (
        "<style>rect{fill:#eef3f8;stroke:#5b7a99}text{font:12px sans-serif;fill:#333}"
        ".name{font:bold 14px sans-serif;fill:#123}path{fill:none;stroke:#b0562b;stroke-width:1.3}"
        "#head path{fill:#b0562b;stroke:none}</style>"
        '<defs><marker id="head" markerWidth="8" markerHeight="8" refX="6" refY="3" orient="auto">'
        '<path d="M0 0 L6 3 L0 6 Z"/></marker></defs>'
    )
    size = f'width="{right + WIDTH + 20}" height="{height}"'
    paper = '<rect width="100%" height="100%" style="fill:#fff;stroke:none"/>'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size}>{paper}'
    return "\n".join([head, style, title, *parts, "</svg>"]) + "\n"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(draw(ROOT), encoding="utf-8")
