# SPDX-License-Identifier: Apache-2.0
"""`pumice compare`: differences by hand, layers that are called twice, and a file of other weights."""

from __future__ import annotations

import copy
import json
import math
from pathlib import Path

import pytest
import torch
from support.command_line import BIN, run
from torch import nn

import pumice
from pumice.comparison import Difference, compare_layers

X = torch.randn(3, 64, generator=torch.Generator().manual_seed(0))
QUICK = {"PUMICE_DEVICE": "llvmpipe"}


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.up, self.act, self.down = nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(self.act(self.up(self.act(self.up(x)))))


def snr(got: torch.Tensor, wanted: torch.Tensor) -> float:
    return 10 * math.log10(wanted.double().square().sum() / (got - wanted).double().square().sum())


def test_a_difference() -> None:
    wanted = torch.tensor([[3.0, 4.0], [0.0, 0.0]])
    got = wanted + torch.tensor([[0.0, 0.5], [0.0, -0.25]])
    found = Difference.of(got, wanted)
    assert found.snr == pytest.approx(10 * math.log10(25 / 0.3125)) and (found.worst, found.at) == (0.5, (0, 1))
    assert (found.wanted, found.got) == (4.0, 4.5)
    nan, inf = float("nan"), float("inf")
    special = torch.tensor([nan, inf, 1.0])
    assert Difference.of(special, special.clone()).snr == inf
    for broken in (torch.tensor([nan, inf, nan]), torch.tensor([0.0, inf, 1.0]), torch.tensor([nan, -inf, 1.0])):
        assert Difference.of(broken, special).snr == -inf
    assert Difference.of(torch.ones(2), torch.zeros(2)).snr == -inf


def test_layers_against_eager_and_against_the_float_model() -> None:
    original = Model().eval()
    model = pumice.quantize(copy.deepcopy(original), "int4")
    rows = {row.name: row for row in compare_layers(model, (X,), original=original, device="llvmpipe")}
    assert list(rows) == ["up", "act", "up (2)", "act (2)", "down"]
    assert all(row.device.snr > 100 for row in rows.values())
    with torch.no_grad():
        first, hidden = original.up(X), original.act(original.up(X))
        assert rows["up"].alone.snr == pytest.approx(snr(model.up(X), first), abs=0.01)
        assert rows["up (2)"].alone.snr == pytest.approx(snr(model.up(hidden), original.up(hidden)), abs=0.01)
        assert rows["down"].so_far.snr == pytest.approx(snr(model(X), original(X)), abs=0.01)
    assert rows["act"].alone.snr == math.inf and rows["act"].so_far.snr < 100
    assert all(row.alone is None for row in compare_layers(model, (X,), device="llvmpipe"))


def test_the_command(tmp_path: Path) -> None:
    source, file = "examples/mlp.py:build", tmp_path / "m.pumice"
    run(BIN / "pumice", "export", source, "--quantize", "int4", "-o", file)
    text = run(BIN / "pumice", "compare", source, file, "--quantize", "int4", **QUICK).stdout
    assert "costs the most by itself" in text and "every layer keeps 30 dB" in text and f"result 0 of {file}" in text
    done = run(BIN / "pumice", "compare", source, file, code=1, **QUICK)  # the float model against the int4 file
    assert f"below 30 dB, first: result 0 of {file}" in done.stdout
    words = "--quantize", "int8", "--layers", "!up", "--json"
    facts = json.loads(run(BIN / "pumice", "compare", source, *words, **QUICK).stdout)
    up, down = facts["layers"]
    assert up["alone"]["snr"] is None and 20 < down["alone"]["snr"] < 80 and facts["below"] == []
    facts = json.loads(run(BIN / "pumice", "compare", source, *words, "--budget", "200", code=1, **QUICK).stdout)
    assert facts["below"] == ["up", "down"]
