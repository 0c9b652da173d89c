# SPDX-License-Identifier: Apache-2.0
"""The limits on sizes that `./dev lint` holds: a file and a function that are too large are found."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_a_file_and_a_function_that_are_too_large(tmp_path: Path) -> None:
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        from setup.sizes import MOST_FILE_LINES, MOST_FUNCTION_LINES, measure
    finally:
        sys.path.pop(0)

    (tmp_path / "graph").mkdir()
    body = "  f();\n" * (MOST_FUNCTION_LINES - 2)
    (tmp_path / "graph/fits.cpp").write_text(f"void fits() {{\n{body}}}\n")
    (tmp_path / "graph/long.cpp").write_text(f"void too_long() {{\n  f();\n{body}}}\n")
    (tmp_path / "large.py").write_text("x = 1\n" * (MOST_FILE_LINES + 1))
    sizes = measure(tmp_path, ["graph/fits.cpp", "graph/long.cpp", "large.py"])
    assert sizes.folders == {"graph": 2 * MOST_FUNCTION_LINES + 1, ".": MOST_FILE_LINES + 1}
    found = sizes.too_large()
    assert [text.split()[0] for text in found] == ["large.py", "graph/long.cpp:1:"]
    assert "too_long" in found[1] and str(MOST_FUNCTION_LINES) in found[1]
    assert "graph/long.cpp:1" in sizes.table()
