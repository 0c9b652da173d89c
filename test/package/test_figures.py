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
def work() -> Iterator[ModuleType]:
    sys.path.insert(0, str(ROOT / "tools"))
    from setup import work as module

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


def test_the_ceiling_of_a_network(work, figures, tmp_path) -> None:
    """Two products of 256 -> 512 -> 256 of fp16 rows: their weights and rows once, two operations a weight and row."""
    path, rows = tmp_path / "linear.pumice", 64
    make = [ROOT / "test/bench/linear_file.py", path, "--layers", 2, "--narrow", 256, "--wide", 512]
    run(sys.executable, *make)
    words = ("--shape", f"x={rows}x256", "-r", 1, "--json", "--device", "llvmpipe")
    said = work.work(json.loads(run(BIN / "pumice-rt", "profile", path, *words).stdout)["rows"])
    constants = json.loads(run(BIN / "pumice-rt", "inspect", path, "--json").stdout)["header"]["constant_bytes"]
    assert said["operations"] == {"f16": 2 * 2 * rows * 256 * 512}
    activations = 2 * rows * (256 + 512 + 512 + 256)
    assert activations + 0.9 * constants < said["bytes"] < activations + 1.1 * constants
    computing = said["operations"]["f16"] / 8e9
    ceilings = {"read": 1e12, "f32": 2e9, "f16": 4e9, "f16 matrix": 8e9, "dot": 9e9, "s8 matrix": 16e9}
    assert work.least_seconds(said, ceilings) == pytest.approx(computing)
    assert work.least_seconds(said, ceilings | {"read": 1e3}) == pytest.approx(said["bytes"] / 1e3)
    kept = {"ceilings": ceilings, "device": {}}
    row = {"what": "a", "unit": "ms", "median": 4e3 * computing, "low": 1, "high": 1, "work": said}
    assert figures.ceiling(row, kept) == (pytest.approx(1e3 * computing), "25")
    (line,) = list(figures._row_table([row], kept))[2:]
    assert line.endswith("| 25 |  |")
    read = {"unit": "tokens/s", "median": rows / computing / 2, "work": said | {"items": rows}}
    assert figures.ceiling(read, kept) == (pytest.approx(rows / computing), "50")
    assert figures.ceiling({**row, "work": said}, kept | {"device": {"cores": 2}})[1] == "12"


@pytest.mark.parametrize(
    ("op", "dtype", "rate"),
    [("linear", "f32", 7), ("linear_q4gsw", "f32", 10), ("softmax", "f32", 2), ("conv2d", "f16", 20)]
    + [
        ("conv2d", "i32", 20),
        ("q8ta_conv2d", "i8", 40),
        ("linear_dq8ca_q4gsw", "f16", 40),
        ("linear_qta8a_qga4w", "i8", 40),
    ],
)
def test_operations_are_counted_for_the_fastest_units_that_give_the_same(work, op, dtype, rate) -> None:
    """The same that `pumice-rt kernel bench` compares with: fp32 products also as two or three of fp16."""
    ceilings = {"read": 1e9, "f32": 2, "f16": 4, "f16 matrix": 21 if op == "linear" else 20, "s8 matrix": 40}
    row = {"op": op, "shapes": f"{dtype}[1,64] -> {dtype}[1,8]", "bytes": 0, "flops": 280}
    assert work.least_seconds(work.work([row]), ceilings) == 280 / rate


def test_a_model_of_llamas_shape(work, tmp_path) -> None:
    """The smallest one, as the recipes make and run theirs."""
    out = tmp_path / "tiny.pumice"
    make = [sys.executable, "-W", "ignore", ROOT / "test/bench/llama_file.py", out, "--size", "tiny", "--max-seq", "64"]
    subprocess.run(list(map(str, make)), cwd=ROOT, check=True, capture_output=True, timeout=200)
    words = ("--prompt-length", 16, "-n", 8, "--json", "--profile")
    said = json.loads(run(BIN / "pumice-rt", "generate", out, *words).stdout)
    assert len(said["tokens"]) == 8 and said["tokens_per_second"] > 0 and said["prompt_tokens_per_second"] > 0
    # 2 layers of 64 -> 128, with 4 and 2 heads of 16; 256 words.
    program = json.loads(run(BIN / "pumice-rt", "inspect", out, "--json").stdout)
    caches = 2 * 2 * (2 * 16) * 2  # layers, keys and values, heads, fp16
    weights = program["header"]["constant_bytes"]
    layers, head = 2 * (64 * 128 + 64 * 64 + 3 * 64 * 128), 64 * 256
    token = work.work_of_a_token(said["rows"], program, 20)
    assert token == {"bytes": weights + 20 * caches, "operations": {"f16": 2 * (layers + head)}}
    prompt = work.work(said["prompt_rows"])
    assert 16 * 2 * layers < prompt["operations"]["f16"] < 16 * 2 * (layers + head) + 4 * 64 * 64 * 16 * 2 * 4
