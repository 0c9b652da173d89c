# SPDX-License-Identifier: Apache-2.0
"""Runs that are prepared before they are made: Session.warm, load(warm=), `pumice warm`, `pumice-rt warm`, and
`pumice cache build`."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from support.command_line import BIN, run
from torch import nn

import pumice
from pumice.runtime.session import Session

ON_CPU = ("--device", "llvmpipe")


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    """A layer of which one row, a few and many are products of different kernels."""
    path = tmp_path_factory.mktemp("warm") / "m.pumice"
    shape = {0: torch.export.Dim("rows", min=1, max=300)}
    build = nn.Linear(64, 48).eval(), (torch.ones(40, 64), torch.ones(40, 64))
    pumice.export(Sum(build[0]), build[1], dynamic_shapes={"x": shape, "y": shape}).save(path)
    return path


class Sum(nn.Module):
    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        self.linear = linear

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return self.linear(x) + y[:, :48]


def test_a_run_that_was_prepared_compiles_nothing(model, tmp_path, monkeypatch) -> None:
    log = tmp_path / "pipelines.txt"
    monkeypatch.setenv("PUMICE_SHADER_LOG", str(log))
    monkeypatch.setenv("PUMICE_FEATURES", "untested")

    def made() -> int:
        return len(log.read_text().splitlines())

    session = pumice.load(model, device="llvmpipe", cache_dir="off", warm=[{"x": (1, 64)}])
    first = made()
    session.warm({"rows": 300}, {})
    warmed = made()
    assert warmed > first and session.memory["arena"] > 0
    for rows in (1, 40, 300):
        x, y = torch.randn(rows, 64), torch.randn(rows, 64)
        torch.testing.assert_close(session(x, y), session(x, y), rtol=0, atol=0)
    assert made() == warmed


@pytest.mark.parametrize(
    ("sizes", "told"),
    [
        ({"row": 3}, "no dynamic size 'row'; they are rows"),
        ({"z": (1, 64)}, "no input 'z'; the inputs are x, y"),
        ({"rows": 301}, "out of bounds, allowed is x: float32[rows in 1..300, 64]"),
        ({"x": (3, 65)}, "out of bounds"),
        ({"x": (3,)}, "2 sizes are needed"),
        ({"x": (3, 64), "rows": 4}, "the size rows is 4 by its name and 3 by the shape of x"),
        ({"x": (3, 64), "y": (4, 64)}, "the size rows is 3 by the shape of x and 4 by the shape of y"),
        ({"rows": True}, "sizes and shapes by name are needed"),
        ({"rows": "3"}, "sizes and shapes by name are needed"),
        ({1: 2}, "sizes and shapes by name are needed"),
        ({"rows": np.float64(3)}, "sizes and shapes by name are needed"),
        ((3, 64), "sizes and shapes by name are needed"),
    ],
)
def test_sizes_that_do_not_fit(model, sizes, told) -> None:
    with pumice.load(model, device="llvmpipe") as session, pytest.raises(pumice.InvalidInputError) as caught:
        session.warm(sizes)
    assert told in str(caught.value) and caught.value.code == "InvalidArgument"


def test_numbers_of_numpy_are_sizes(model) -> None:
    with pumice.load(model, device="llvmpipe", warm=[{"rows": np.int64(7)}, {"x": (np.int32(3), 64)}]) as session:
        assert session(torch.ones(7, 64), torch.ones(7, 64)).shape == (7, 48)


@pytest.mark.parametrize("warm", [{"rows": 3}, "rows=3", None, 5])
def test_a_load_prepares_a_list_of_runs(model, warm) -> None:
    with pytest.raises(pumice.InvalidInputError, match="warm must be a list of runs") as caught:
        pumice.load(model, device="llvmpipe", warm=warm)
    assert caught.value.path == "warm"


def test_a_load_that_cannot_prepare_gives_its_memory_back(model, monkeypatch) -> None:
    loaded, warm = [], Session.warm
    monkeypatch.setattr(Session, "warm", lambda session, *sizes: loaded.append(session) or warm(session, *sizes))
    with pytest.raises(pumice.InvalidInputError, match="out of bounds"):
        pumice.load(model, device="llvmpipe", warm=[{"rows": 301}])
    with pytest.raises(pumice.InvalidInputError) as caught:
        loaded[0](torch.ones(3, 64), torch.ones(3, 64))
    assert caught.value.code == "WrongState"


def test_the_commands(model) -> None:
    words = "warm", model, *ON_CPU, "--size", "rows=1,7", "--json"
    rows = json.loads(run(BIN / "pumice", *words).stdout)["rows"]
    assert [row["shape"] for row in rows] == ["load", "x=1x64,y=1x64", "x=7x64,y=7x64"]
    row = json.loads(run(BIN / "pumice-rt", "warm", model, *ON_CPU, "--shape", "y=7x64", "--json").stdout)
    assert row["shape"] == "x=7x64,y=7x64" and row["warm_ms"] > 0
    assert "x=40x64" in run(BIN / "pumice-rt", "warm", model, *ON_CPU).stdout
    text = run(BIN / "pumice", "warm", model, *ON_CPU, "--cache-dir", "off").stdout
    assert "x=40x64,y=40x64" in text and "nothing is kept" in text
    assert "whole number" in run(BIN / "pumice", "warm", model, *ON_CPU, "--size", "rows=1,x", code=2).stderr
    run(BIN / "pumice-rt", "warm", model, *ON_CPU, "--size", "rows=301", code=3)


def test_a_cache_is_made_for_other_machines(model, tmp_path) -> None:
    folder, copy = tmp_path / "cache", tmp_path / "copy"
    words = ("cache", "build", model, "--for", "llvmpipe", "--to", folder, "--size", "rows=1,300")
    said = json.loads(run(BIN / "pumice", *words, "--json").stdout)
    assert [row["shape"] for row in said["rows"]] == ["load", "x=1x64,y=1x64", "x=300x64,y=300x64"]
    assert said["files"].keys() == {path.name for path in folder.iterdir()}
    assert {name.partition("-")[0] for name in said["files"]} == {"key", "pipelines", "tested"}
    assert "is not empty" in run(BIN / "pumice", *words, code=2).stderr
    empty = words[:6] + (tmp_path / "empty", "--size")
    run(BIN / "pumice", *empty, "rows=301", code=3)
    assert not list(empty[6].iterdir())  # so that the next try may have it

    def told(cache_dir: Path) -> str:
        return run(BIN / "pumice", "warm", model, *ON_CPU, "--cache-dir", cache_dir, PUMICE_LOG="debug").stderr

    shutil.copytree(folder, copy)
    assert told(copy) == ""  # nothing is tested again, nothing refused
    (copy / "key").unlink()
    assert "self test: " in told(copy)
