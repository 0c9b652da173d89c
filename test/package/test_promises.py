# SPDX-License-Identifier: Apache-2.0
"""docs/compatibility.md, held to what was recorded: nothing promised is gone or another thing now, and files of
former releases give what they gave."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from support import promises

import pumice

ROOT = Path(__file__).parents[2]
RECORDED = json.loads((promises.FOLDER / "recorded.json").read_text(encoding="utf-8"))
FILES = sorted(promises.FOLDER.glob("*.pumice"))
AGAIN = "a promise of docs/compatibility.md: a new minor version and CHANGELOG.md, then python -m support.promises"


def broken(recorded: dict, now: dict) -> list[str]:
    """What was recorded and is not there, or is another thing; what was added does not matter."""
    found = []
    for name, value in recorded.items():
        if name not in now:
            found.append(f"{name} is gone")
        elif isinstance(value, list):
            found += [f"{name}: {each} is gone" for each in value if each not in now[name]]
        elif now[name] != value:
            found.append(f"{name} was {value}, is {now[name]}")
    return found


@pytest.mark.parametrize("what", ["python", "c", "options", "codes"])
def test_nothing_that_was_promised_is_gone(what) -> None:
    assert len(RECORDED[what]) > 10
    assert not broken(RECORDED[what], promises.now()[what]), AGAIN


def test_a_planted_break_is_found() -> None:
    now = {"load": ["source", "device"], "pumice_run": "int pumice_run(void)", "Ok": 0}
    old = {"load": ["source", "features"], "pumice_run": "int pumice_run(int)", "Ok": 0, "check": []}
    assert broken(old, now) == [
        "load: features is gone",
        "pumice_run was int pumice_run(int), is int pumice_run(void)",
        "check is gone",
    ]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_file_of_a_release_gives_what_it_gave(path) -> None:
    """Softmax of 8 numbers is within 2e-6 of eager: products of 64 terms of about 1, each rounded to 2^-24."""
    kept = np.load(path.with_suffix(".npz"))
    session = pumice.load(path)
    assert session.precision == "split"  # also of files from before the field
    for answer in kept["answers"]:  # the third counts its calls
        np.testing.assert_allclose(session(kept["x"]), answer, rtol=0, atol=2e-6)


def test_there_is_a_file_of_this_release() -> None:
    assert ".".join(pumice.__version__.split(".")[:2]) in [path.stem for path in FILES]


def test_the_page_names_tests_that_exist() -> None:
    page = (ROOT / "docs/compatibility.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if line.startswith("| ") and not line.startswith(("| |", "|---"))]
    for row in rows:
        names = re.findall(r"`(test/[\w/.]+)`", row.rsplit("|", 2)[1])
        assert names and all((ROOT / name).is_file() for name in names), row
