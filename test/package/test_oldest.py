# SPDX-License-Identifier: Apache-2.0
"""./dev test-oldest installs the lower ends of the ranges in pyproject.toml; this environment has the upper ones."""

from __future__ import annotations

import re
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tools"))
from setup import oldest  # noqa: E402 (tools is no package)


def ranges() -> dict[str, tuple[str, str]]:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    found = (re.fullmatch(r"(\w+)>=(\d+\.\d+),<(\d+\.\d+)", each) for each in extras["export"])
    return {match[1]: (match[2], match[3]) for match in found}


def test_the_lower_ends_are_what_is_installed() -> None:
    named = [each for each in oldest.requirements() if "torch" in each]
    assert named == [f"{name}=={low}.*" for name, (low, _) in ranges().items()] and len(named) == 2
    assert any(each.startswith("numpy") for each in oldest.requirements())


def test_the_upper_ends_are_what_every_test_runs_with() -> None:
    for name, (_, above) in ranges().items():
        major, minor = map(int, version(name).split(".")[:2])
        assert f"{major}.{minor + 1}" == above, f"{name} {version(name)} is not the newest of its range"


def test_its_tests_exist() -> None:
    assert all((ROOT / each).is_file() for each in oldest.TESTS)


def test_the_compatibility_page_names_the_ranges() -> None:
    page = (ROOT / "docs/compatibility.md").read_text(encoding="utf-8")
    for name, (low, above) in ranges().items():
        major, minor = above.split(".")
        assert f"{name} {low} to {major}.{int(minor) - 1}" in page
