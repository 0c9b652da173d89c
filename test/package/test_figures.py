# SPDX-License-Identifier: Apache-2.0
"""./dev bench-gpu: each figure of docs/performance.md has a recipe, and two commits can be compared."""

from __future__ import annotations

import importlib.util
import json
import re
import string
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from support.command_line import BIN, run

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def figures() -> Iterator[ModuleType]:
    sys.path.insert(0, str(ROOT / "tools"))
    from setup import figures as module

    yield module
    sys.path.remove(str(ROOT / "tools"))


@pytest.fixture(scope="module")
def measured(tmp_path_factory) -> dict:
    """A table for CPU drivers, by the command."""
    out = tmp_path_factory.mktemp("figures") / "figures.json"
    command = [sys.executable, ROOT / "dev", "bench-gpu", "--tool", BIN / "pumice-rt", "--rounds", "2", "--no-peers"]
    command += ["--only", "^Products, processor", "--json", out]
    done = subprocess.run(list(map(str, command)), cwd=ROOT, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    kept = json.loads(out.read_text())
    assert all(row["what"] in done.stdout for row in kept["figures"])
    return kept


def test_recipes_name_what_there_is(figures) -> None:
    recipes = figures.tomllib.loads(figures.RECIPES.read_text())
    rows = [row for table in recipes["table"] for row in table.get("row", [])]
    titles = [table["title"] for table in recipes["table"]]
    assert len(set(titles)) == len(titles) and rows
    for table in recipes["table"]:
        names = [row["what"] for row in table.get("row", [])]
        assert len(set(names)) == len(names), table["title"]
    assert {row["file"] for row in rows} <= set(recipes["files"])
    assert {row["peer"] for row in rows if "peer" in row} == set(recipes["peers"])
    for row in rows:
        assert ("bench" in row) != ("generate" in row) and row.get("figure", "write") in ("write", "read"), row
    names = {"python", "peers", "out", *recipes["files"]}
    for text in (*recipes["files"].values(), *(peer["command"] for peer in recipes["peers"].values())):
        assert {name for _, name, _, _ in string.Formatter().parse(text) if name} <= names
        assert all((ROOT / word).exists() for word in text.split() if word.startswith("test/"))


def test_recipes_of_convolutions_name_a_network(figures) -> None:
    path = ROOT / "test/bench/conv_file.py"
    found = importlib.util.spec_from_file_location("conv_file", path)
    conv_file = importlib.util.module_from_spec(found)
    found.loader.exec_module(conv_file)
    commands = [text.split() for text in figures.tomllib.loads(figures.RECIPES.read_text())["files"].values()]
    networks = {words[2] for words in commands if words[0] == "test/bench/conv_file.py"}
    assert networks and networks <= set(conv_file.NETWORKS)


def test_figures_have_their_spread_and_kernel(measured) -> None:
    assert len(measured["figures"]) == 6 and measured["ceilings"]["read"] > 1e8
    for row in measured["figures"]:
        assert row["rounds"] == 2 and 0 < row["low"] <= row["median"] <= row["high"], row
        assert row["kernel"] and 0 < row["of_roof"] < 3, row


def test_the_page_has_every_row_and_no_other(figures, measured) -> None:
    text = figures.page([measured])
    assert figures.MARK not in text and measured["device"]["name"] in text
    rows = [line.split("|")[1].strip() for line in text.splitlines() if line.startswith("| ") and "---" not in line]
    assert rows == ["case", *(row["what"] for row in measured["figures"])]


def test_what_is_stored_is_the_page(figures) -> None:
    if not figures.stored():
        pytest.skip("no device's figures are stored yet")
    assert figures.PAGE.read_text() == figures.page(figures.stored())


def test_what_moved_beyond_the_spread(figures, measured) -> None:
    assert figures.moved(measured, measured) == []
    other = json.loads(json.dumps(measured))
    first, second, third = other["figures"][:3]
    for key in ("low", "median", "high"):
        first[key] *= 10
        second[key] /= 10
    third["what"] = "another"
    lines = figures.moved(measured, other)
    assert [line.split()[0] for line in lines] == ["worse", "better", "new", "gone"]
    assert re.search(r"\+900\.0 %$", lines[0]) and re.search(r"-90\.0 %$", lines[1])


def test_a_model_of_llamas_shape(tmp_path) -> None:
    """The smallest one, as the recipes make and run theirs."""
    out = tmp_path / "tiny.pumice"
    make = [sys.executable, "-W", "ignore", ROOT / "test/bench/llama_file.py", out, "--size", "tiny", "--max-seq", "64"]
    subprocess.run(list(map(str, make)), cwd=ROOT, check=True, capture_output=True, timeout=200)
    said = json.loads(run(BIN / "pumice-rt", "generate", out, "--prompt-length", 16, "-n", 8, "--json").stdout)
    assert len(said["tokens"]) == 8 and said["tokens_per_second"] > 0 and said["prompt_tokens_per_second"] > 0
