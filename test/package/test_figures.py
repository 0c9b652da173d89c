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
    names = {"peers", "ncnn", "out", *recipes["files"]}
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


def test_the_network_of_ncnn_is_resnet50(tmp_path) -> None:
    """Its weights with those of the norms folded in: 25,557,032 of torchvision's, less 2 x 26,560, and a bias each."""
    run(sys.executable, ROOT / "test/bench/ncnn_file.py", tmp_path)
    lines = (tmp_path / "net.param").read_text().splitlines()
    kinds = [line.split()[0] for line in lines[2:]]
    assert lines[1].split()[0] == str(len(kinds)) and kinds.count("Convolution") == 53
    weighted = kinds.count("Convolution") + kinds.count("InnerProduct")
    assert (tmp_path / "net.bin").stat().st_size == 4 * (25_557_032 - 26_560 + weighted)


def test_figures_have_their_spread_and_kernel(measured) -> None:
    assert len(measured["figures"]) == 6 and measured["ceilings"]["read"] > 1e8
    for row in measured["figures"]:
        assert row["rounds"] == 2 and 0 < row["low"] <= row["median"] <= row["high"], row
        assert row["kernel"] and row["of_roof"] > 0, row


def test_rates_are_those_of_the_median(figures) -> None:
    """Not of the first round, which they come from."""
    figure = figures.Figure("a table", "a product", "us", facts={"kernel": "gemv1", "tflop_s": 1.5, "of_roof": 0.25})
    for microseconds in (40, 20, 10):
        figure.add(microseconds)
    assert {"median": 20, "kernel": "gemv1", "tflop_s": 3.0, "of_roof": 0.5}.items() <= figure.kept().items()


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
    rates = {"f32": 2e9, "f16": 8e9, "i8": 16e9}
    assert work.least_seconds(said, 1e12, rates) == pytest.approx(computing)
    assert work.least_seconds(said, 1e3, rates) == pytest.approx(said["bytes"] / 1e3)
    two = {"bytes": 0, "operations": {"f16": 8e9, "i8": 8e9}}
    assert work.least_seconds(two, 1e12, rates) == 1.5
    kept = {"ceilings": {"read": 1e12}, "rates": rates, "device": {}}
    row = {"what": "a", "unit": "ms", "median": 4e3 * computing, "low": 1, "high": 1, "work": said}
    assert figures.ceiling(row, kept) == (pytest.approx(1e3 * computing), "25")
    (line,) = list(figures._row_table([row], kept))[2:]
    assert line.endswith("| 25 |  |")
    read = {"unit": "tokens/s", "median": rows / computing / 2, "work": said | {"items": rows}}
    assert figures.ceiling(read, kept) == (pytest.approx(rows / computing), "50")
    assert figures.ceiling({**row, "work": said}, kept | {"device": {"cores": 2}})[1] == "12"


def _bench(*words: str) -> dict:
    options = ("--seconds=0", "--rotate=4KB", "--json", "--device", "llvmpipe")
    return json.loads(run(BIN / "pumice-rt", "kernel", "bench", *words, *options).stdout)


ARITHMETICS = {
    "linear dtype=f32": "f32 by 3",
    "linear dtype=f16": "f16",
    "linear_q4gsw g=32,dtype=f32": "f32 by 2",
    "linear_q4gsw g=32,dtype=f16": "f16",
    "linear_q8csw dtype=f32": "f32 by 2",
    "linear_dq8ca_q4gsw g=32,dtype=f16": "i8",
    "q8ta_linear": "i8",
    "conv2d dtype=f32": "f32",
    "conv2d dtype=f16": "f16",
    "q8ta_conv2d": "i8",
    "matmul T=f32 a=T[4,64] b=T[64,8] a_perm=[] b_perm=[] act=0 -> T[4,8]": "f32",
    "matmul T=f16 a=T[4,64] b=T[64,8] a_perm=[] b_perm=[] act=0 -> T[4,8]": "f16",
}
SIZES = {"linear": "m=2,n=64,k=64", "conv2d": "b=1,c=16,o=16,h=8,w=8,k=3"}


def test_the_tool_says_which_units_limit_an_operator(figures) -> None:
    """The rate of an arithmetic is that of the fastest units that give the same: fp32 also as two or three products of
    fp16, integers by anything."""
    words = []
    for case in ARITHMETICS:
        op, _, more = case.partition(" ")
        size = next((text for name, text in SIZES.items() if name in op), None)
        text = f"op={op} {more}" if size is None else ",".join(filter(None, (f"op={op}", size, more)))
        words += ["--case", text]
    said = _bench(*words, "--kernel=pick")
    assert [row["arithmetic"] for row in said["rows"]] == list(ARITHMETICS.values())
    # A kernel that a CPU driver does not pick. Of split operands test/kernel_bench/arithmetic_test.cpp has it: Mesa's
    # CPU driver compiles their matrices for minutes.
    (row,) = _bench("--case", "op=q8ta_linear,m=2,n=64,k=64", "--kernel=dot1", "--no-ceilings")["rows"]
    assert row["arithmetic"] == "i8"
    ceilings = {each["name"]: each["per_second"] for each in said["ceilings"]}
    rates = {each["name"]: each["per_second"] for each in said["rates"]}
    f32, matrix = ceilings["f32"], ceilings["f16 matrix"]
    f16 = max(f32, ceilings["f16"], matrix)
    i8 = max(f16, ceilings["dot"], ceilings["s8 matrix"])
    assert rates == {
        "f32": f32,
        "f32 by 2": max(f32, matrix / 2),
        "f32 by 3": max(f32, matrix / 3),
        "f16": f16,
        "i8": i8,
    }
    for row in said["rows"]:
        least = max(row["bytes"] / ceilings["read"], row["flops"] / rates[row["arithmetic"]])
        assert row["flops"] > 0 and row["roof_us"] == pytest.approx(1e6 * least), row


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
    inputs, rest = 64 * 128, 64 * 64 + 3 * 64 * 128  # of a layer: what attention reads, and what follows it
    layers, head = 2 * (inputs + rest), 64 * 256
    token = work.work_of_a_token(said["rows"], program, 20)
    assert token == {"bytes": weights + 20 * caches, "operations": {"f16": 2 * (layers + head)}}
    prompt = work.work(said["prompt_rows"])
    # After the attention of the last layer, of one row of 16.
    least = 2 * (16 * (layers - rest) + rest)
    assert least < prompt["operations"]["f16"] < least + 16 * 2 * head + 4 * 64 * 64 * 16 * 2 * 4
