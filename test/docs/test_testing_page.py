# SPDX-License-Identifier: Apache-2.0
"""docs/testing.md names the tests that hold each of its rows; they are there, and so is every file that it names."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/testing.md").read_text(encoding="utf-8")
NAMED = re.compile(r"`(test/[\w/]+\.(?:py|cpp))::([\w.]+)`")


def table() -> list[list[str]]:
    lines = PAGE[PAGE.index("| what | where |") :].split("\n\n")[0].splitlines()
    return [re.split(r" \| ", line.strip("| ")) for line in lines[2:]]


def lacks(path: str, name: str) -> str:
    """Why there is no such test; empty if there is."""
    file = ROOT / path
    if not file.is_file():
        return f"no file {path}"
    suite, _, case = name.rpartition(".")
    test = rf"^TEST(_F|_P)?\({suite}, {case}\)" if path.endswith(".cpp") else rf"^def {name}\("
    return "" if re.search(test, file.read_text(encoding="utf-8"), re.MULTILINE) else f"no test {name} in {path}"


def test_every_row_names_what_fails() -> None:
    rows = table()
    assert len(rows) > 40
    for row in rows:
        assert len(row) == 4, f"four columns, not {len(row)}: {row}"
        cells = re.findall(r"`([^`]+)`", row[-1])
        assert cells and all("::" in cell or cell.startswith("./dev ") for cell in cells), row[0]


def test_every_test_that_is_named_exists() -> None:
    found = NAMED.findall(PAGE)
    assert len(found) > 60
    assert not [why for why in (lacks(path, name) for path, name in found) if why]


def test_every_file_that_is_named_exists() -> None:
    words = {word for text in re.findall(r"`([^`]+)`", PAGE) for word in text.split()}
    paths = {word for word in words if re.match(r"(test|tools|docs|ops|vulkan|glsl|graph)/", word) and "::" not in word}
    assert len(paths) > 30
    assert not [path for path in paths if not any(ROOT.glob(path.rstrip("/")))]


@pytest.mark.parametrize("command", sorted(set(re.findall(r"`(\./dev [^`]+)`", "".join(row[3] for row in table())))))
def test_every_command_that_is_named_exists(command: str) -> None:
    _, name, *options = shlex.split(command)
    done = subprocess.run([sys.executable, ROOT / "dev", name, "--help"], capture_output=True, text=True, check=True)
    assert all(option in done.stdout for option in options if option.startswith("--"))


def test_a_test_that_is_gone_is_told() -> None:
    """Planted: another name, another file, another suite."""
    assert not lacks("test/docs/test_testing_page.py", "test_a_test_that_is_gone_is_told")
    assert lacks("test/docs/test_testing_page.py", "test_gone") == "no test test_gone in test/docs/test_testing_page.py"
    assert lacks("test/docs/test_gone.py", "test_gone") == "no file test/docs/test_gone.py"
    assert not lacks("test/graph/plan_test.cpp", "Plan.RandomLifetimes")
    assert lacks("test/graph/plan_test.cpp", "Hazard.RandomLifetimes")
