# SPDX-License-Identifier: Apache-2.0
"""`bench` and `profile`: sizes by name, real inputs, layers; and that a pipe loses nothing of a table."""

from __future__ import annotations

import json
import os
import pty
import subprocess
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch
from support.command_line import BIN, run
from torch import nn

import pumice
from pumice.cli.trace import layers, waits

QUICK = ("--device", "llvmpipe", "-r", "1")
NAME = "a_layer_whose_name_is_much_longer_than_what_a_table_would_leave_for_it_on_a_terminal_of_80_columns"


class Two(nn.Module):
    """Two inputs that share the size seq; ids index a table of 4 rows."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(4, 16)
        self.add_module(NAME, nn.Linear(16, 16))
        self.out = nn.Linear(16, 16)

    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return self.out(torch.relu(getattr(self, NAME)(self.embed(ids))) * mask[..., None])


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("two") / "two.pumice"
    seq, batch = torch.export.Dim("seq", min=2, max=64), torch.export.Dim("batch", min=1, max=4)
    ids, shape = torch.ones(2, 8, dtype=torch.int64), {0: batch, 1: seq}
    pumice.export(Two().eval(), (ids, ids.float()), dynamic_shapes={"ids": shape, "mask": shape}).save(path)
    return path


@pytest.fixture(params=["pumice", "pumice-rt"])
def tool(request) -> Path:
    return BIN / request.param


def test_sizes_by_name_and_by_the_shape_of_another_input(tool, model) -> None:
    def shape(*words: str) -> str:
        return json.loads(run(tool, "bench", model, *QUICK, "--warmup", "0", "--json", *words).stdout)["shape"]

    assert shape() == "ids=2x8,mask=2x8"
    assert shape("--shape", "ids=1x16") == "ids=1x16,mask=1x16"
    assert shape("--size", "seq=5") == "ids=2x5,mask=2x5"
    assert shape("--size", "seq=5", "--shape", "mask=3x5") == "ids=3x5,mask=3x5"
    for words, told in (
        (("--size", "sq=5"), "no dynamic size 'sq'"),
        (("--size", "seq=x"), "--size seq=x: a size is a whole number"),
        (("--size", "seq=4x"), "--size seq=4x: a size is a whole number"),
        (("--shape", "ids=1x"), "--shape ids=1x: sizes are whole numbers"),
        (("--size", "seq=4", "--size", "seq=5"), "--size seq=5: 'seq' is given twice"),
        (("--shape", "ids=1x4", "--shape", "ids=1x5"), "--shape ids=1x5: 'ids' is given twice"),
        (("--size", "seq=4", "--shape", "ids=1x5"), "5"),
        (("--shape", "ids=1x4", "--shape", "mask=1x5"), "5"),
    ):
        assert told in run(tool, "bench", model, *QUICK, *words, code=2).stderr
    run(tool, "bench", model, *QUICK, "--size", "seq=65", code=3)


def test_real_inputs(tool, model, tmp_path) -> None:
    ids = np.full((1, 3), 3, np.int64)
    np.save(tmp_path / "ids.npy", ids)
    np.save(tmp_path / "mask.npy", ids.astype(np.float32))
    files = "--inputs", tmp_path / "ids.npy", "--inputs", tmp_path / "mask.npy"
    row = json.loads(run(tool, "bench", model, *QUICK, "--warmup", "0", "--json", *files).stdout)
    assert row["shape"] == "ids=1x3,mask=1x3"
    assert "embedding" in run(tool, "profile", model, *QUICK, *files).stdout
    assert "leave out" in run(tool, "profile", model, *QUICK, *files, "--size", "seq=3", code=2).stderr
    np.save(tmp_path / "ids.npy", ids + 1)  # beyond the table: the model sees the file's numbers
    assert "index" in run(tool, "profile", model, *QUICK, *files, code=3).stderr.lower()


def test_a_size_that_is_an_expression(tmp_path) -> None:
    path, half = tmp_path / "m.pumice", torch.export.Dim("half", min=1, max=8)
    pumice.export(nn.Linear(4, 4).eval(), (torch.ones(6, 4),), dynamic_shapes={"input": {0: 2 * half}}).save(path)
    words = "--warmup", "0", "--json", "--size", "half=5"
    assert json.loads(run(BIN / "pumice", "bench", path, *QUICK, *words).stdout)["shape"] == "input=10x4"


def test_a_profile_has_layers_operands_and_starts(model) -> None:
    with pumice.load(model, device="llvmpipe") as session:
        rows = session.profile(torch.ones(2, 8, dtype=torch.int64), torch.ones(2, 8))
    linear = next(row for row in rows if row.layer == NAME)  # relu is computed in it
    assert linear.operator == "linear" and f"{NAME}.weight" in linear.operands and "->" in linear.operands
    assert {row.layer for row in rows} >= {"embed", NAME, "out"}
    assert [row.layer for row in rows if row.operator == "mul"] == [""]  # what a pattern looked at in vain is not in it
    assert [row.start_us for row in rows] == sorted(row.start_us for row in rows) and rows[-1].start_us > 0
    calls = [op["name"] for op in pumice.inspect(model)["methods"][0]["ops"]]
    assert all(calls[row.call] == row.operator for row in rows if row.call >= 0)
    text = run(BIN / "pumice", "profile", model, *QUICK, "--by", "layer").stdout
    assert NAME in text and "(no layer)" not in text.splitlines()[0]


def test_inspect_counts_dispatches(model) -> None:
    """Those that a device makes, from its profile; `pumice inspect` says so for the least device."""
    with pumice.load(model, device="llvmpipe") as session:
        rows = session.profile(torch.ones(2, 8, dtype=torch.int64), torch.ones(2, 8))
    words = run(BIN / "pumice-rt", "inspect", model, "--profile", "llvmpipe", "--json").stdout
    (method,) = json.loads(words)["methods"]
    assert method["run"]["dispatches"] == len(rows) and 0 < method["run"]["waits"] < len(rows)
    counts = Counter(row.call for row in rows)
    assert [op["dispatches"] for op in method["ops"]] == [counts[call] for call in range(len(method["ops"]))]
    text = run(BIN / "pumice", "inspect", model).stdout
    assert f"{pumice.inspect(model)['methods'][0]['run']['dispatches']} dispatches" in text
    assert "test/profiles" in run(BIN / "pumice-rt", "inspect", model, "--profile", "none", code=3).stderr


def test_a_trace_of_layers_and_dispatches(model, tmp_path) -> None:
    path = tmp_path / "t.json"
    facts = json.loads(run(BIN / "pumice", "profile", model, *QUICK, "--json", "--trace", path).stdout)
    events = json.loads(path.read_text())["traceEvents"]
    tracks = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
    slices = [event for event in events if event["ph"] == "X"]
    by_track = {name: [e for e in slices if tracks[e["tid"]] == name] for name in ("layers", "dispatches", "copies")}
    made = [(e["name"], e["ts"], e["dur"]) for e in by_track["dispatches"] + by_track["copies"]]
    rows = [(row["operator"], row["start_us"], row["microseconds"]) for row in facts["rows"]]
    assert sorted(made) == sorted(rows) and len(by_track["dispatches"]) >= 3
    assert {e["args"]["layer"] for e in by_track["layers"]} >= {"embed", NAME, "out"}
    assert all(e["args"]["layer"] in ("", "embed", NAME, "out") for e in by_track["layers"])


def test_layers_of_a_trace_nest() -> None:
    names = ["", "a.layer.0.{k,q}", "a.layer.0.out", "a.layer.1", "", "a", "b.c"]
    rows = [pumice.ProfileRow("op", "k", "", 8.0, 0, 0, start_us=10.0 * i, layer=n) for i, n in enumerate(names)]
    found = sorted((e["ts"], -e["dur"], e["args"]["layer"]) for e in layers(rows))
    assert found == [
        (10, -28, "a"), (10, -18, "a.layer.0"), (10, -8, "a.layer.0.{k,q}"), (20, -8, "a.layer.0.out"),
        (30, -8, "a.layer.1"), (50, -8, "a"), (60, -8, "b"), (60, -8, "b.c"),
    ]  # fmt: skip


def test_waits_of_a_trace_are_between_the_rows() -> None:
    starts = {"a": 0.0, "b": 5.0, "c": 20.0, "d": 31.0}  # b begins before a ends
    rows = [pumice.ProfileRow(name, "k", "", 8.0, 0, 0, start_us=start) for name, start in starts.items()]
    found = [(event["ts"], event["dur"], event["args"]["for"]) for event in waits(rows)]
    assert found == [(13.0, 7.0, "c"), (28.0, 3.0, "d")]


def test_a_model_of_torchs_own_layers_has_its_layers(tmp_path) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Softmax(-1)).eval()  # none of its lines is ours
    pumice.export(model, (torch.ones(2, 8),)).save(tmp_path / "m.pumice")
    with pumice.load(tmp_path / "m.pumice", device="llvmpipe") as session:
        assert [row.layer for row in session.profile(torch.ones(2, 8))] == ["0", "1"]


def test_a_pipe_and_a_terminal_of_80_columns_lose_nothing(model) -> None:
    text = run(BIN / "pumice", "profile", model, *QUICK, "--by", "call", COLUMNS="80").stdout
    rows = [line for line in text.splitlines() if NAME in line]
    assert len(rows) == 1 and f"{NAME}.weight" in rows[0] and "…" not in text
    lines = run(BIN / "pumice", "inspect", model, COLUMNS="40").stdout.splitlines()
    assert any(line.rstrip().endswith(f"{NAME}.bias") for line in lines)
    assert any("lower bound" in line and "memory plan" in line for line in lines)
    on_terminal = _terminal([BIN / "pumice", "profile", model, *QUICK, "--by", "layer"])
    assert NAME in "".join(line[2:14].strip() for line in on_terminal) or "…" not in "".join(on_terminal)
    assert max(map(len, on_terminal)) <= 80


def test_kernels_that_did_not_run_are_below_the_table() -> None:
    case = "m=1,n=64,k=64,g=32,dtype=f32"
    words = "--op", "linear_q4gsw", "--case", case, "--seconds", "0.01", "--no-ceilings", "--device", "llvmpipe"
    lines = run(BIN / "pumice", "kernel", "bench", *words, "--kernel", "plain", "--kernel", "dot1").stdout.splitlines()
    header = next(line for line in lines if "TFLOP/s" in line)
    assert all(word in header for word in ("us", "p10", "GB/s", "% roof"))
    assert next(line for line in lines if "plain" in line).split()[1].replace(".", "").isdigit()
    assert any(line.split()[:2] == ["skipped:", "dot1:"] for line in lines)


def _terminal(command: list) -> list[str]:
    """What a command prints on a terminal of 80 columns, without control sequences."""
    master, slave = pty.openpty()
    environment = {**os.environ, "COLUMNS": "80", "TERM": "dumb", "NO_COLOR": "1"}
    process = subprocess.Popen(
        [str(part) for part in command], stdout=slave, stderr=subprocess.DEVNULL, env=environment
    )
    os.close(slave)
    data = b""
    try:
        while chunk := os.read(master, 65536):
            data += chunk
    except OSError:  # the other end is closed
        pass
    os.close(master)
    assert process.wait(60) == 0
    return data.decode().replace("\r", "").splitlines()
