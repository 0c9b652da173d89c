# SPDX-License-Identifier: Apache-2.0
"""How large the project is: lines of each folder, large files, long functions. Part of `./dev lint`."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

MOST_FILE_LINES, LARGE_FILE_LINES = 400, 300
MOST_FUNCTION_LINES, SHOWN_FUNCTIONS = 80, 5
SOURCES = (".h", ".hpp", ".cpp", ".c", ".py", ".glsl", ".glslh", ".cmake")
WITH_FUNCTIONS = (".h", ".hpp", ".cpp", ".c", ".py")  # those that lizard reads


@dataclass
class Sizes:
    """What was counted. A function is (lines, name, file:line)."""

    folders: Counter[str] = field(default_factory=Counter)
    files: dict[str, int] = field(default_factory=dict)
    functions: list[tuple[int, str, str]] = field(default_factory=list)

    def too_large(self) -> list[str]:
        """One sentence for each file and function beyond the limits."""
        found = [
            f"{name} has {lines} lines, the limit is {MOST_FILE_LINES}: split it"
            for name, lines in sorted(self.files.items())
            if lines > MOST_FILE_LINES
        ]
        return found + [
            f"{place}: {name} has {lines} lines, the limit of a function is {MOST_FUNCTION_LINES}: split it"
            for lines, name, place in self.functions
            if lines > MOST_FUNCTION_LINES
        ]

    def table(self) -> str:
        """Lines of each folder, files over LARGE_FILE_LINES, and the longest functions."""
        rows = [f"{lines:7}  {folder}" for folder, lines in sorted(self.folders.items())]
        rows.append(f"{self.folders.total():7}  in {len(self.files)} files")
        large = sorted(((n, name) for name, n in self.files.items() if n > LARGE_FILE_LINES), reverse=True)
        rows.append(f"files over {LARGE_FILE_LINES} lines: {len(large)}")
        rows += [f"{lines:7}  {name}" for lines, name in large]
        rows.append("longest functions:")
        rows += [f"{lines:7}  {name}  {place}" for lines, name, place in self.functions[:SHOWN_FUNCTIONS]]
        return "\n".join(rows)


def measure(root: Path, names: Iterable[str]) -> Sizes:
    """Counts the source files `names`, which are relative to `root`."""
    import lizard

    sizes = Sizes()
    sources = [name for name in names if name.endswith(SOURCES)]
    for name in sources:
        lines = len((root / name).read_text(encoding="utf-8").splitlines())
        sizes.files[name] = lines
        sizes.folders[name.split("/")[0] if "/" in name else "."] += lines
    paths = {str(root / name): name for name in sources if name.endswith(WITH_FUNCTIONS)}
    for file in lizard.analyze_files(list(paths), threads=1):
        for function in file.function_list:
            place = f"{paths[file.filename]}:{function.start_line}"
            sizes.functions.append((function.end_line - function.start_line + 1, function.name, place))
    sizes.functions.sort(key=lambda each: (-each[0], each[2]))
    return sizes


def main() -> int:
    """`python sizes.py ROOT < NAMES`: prints the table; 1 when something is too large."""
    sizes = measure(Path(sys.argv[1]), sys.stdin.read().splitlines())
    print("\n".join([sizes.table(), *sizes.too_large()]))
    return 1 if sizes.too_large() else 0


if __name__ == "__main__":
    sys.exit(main())
