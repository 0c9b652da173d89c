# SPDX-License-Identifier: Apache-2.0
"""What a file may take: its need is reckoned before anything is allocated, equals what is then allocated, and is
refused beyond max_memory; a load stops after max_seconds."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import torch
from support import hostile
from support.textures import Mixed
from torch import nn

import pumice


class Cache(nn.Module):
    """A state that a call writes, and one of zeros."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("keys", torch.randn(1, 40, 8))
        self.register_buffer("count", torch.zeros(1, dtype=torch.int64))

    def forward(self, x):
        self.keys[:, :3] = x
        self.count.add_(1)
        return self.keys.sum(-1) + self.count


def mlp(scheme: str | None) -> nn.Module:
    torch.manual_seed(1)
    module = nn.Sequential(nn.Linear(96, 160), nn.ReLU(), nn.Linear(160, 320), nn.GELU(), nn.Linear(320, 10)).eval()
    if scheme:
        pumice.quantize(module, scheme, group_size=32)
    return module


def convolutions() -> nn.Module:
    return nn.Sequential(nn.Conv2d(3, 16, 3), nn.ReLU(), nn.Conv2d(16, 16, 3, groups=16), nn.Conv2d(16, 40, 1)).eval()


class Words(nn.Module):
    """An embedding and the layer that shares its weight; indices report to the status words."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(500, 32)

    def forward(self, ids):
        return nn.functional.linear(self.table(ids), self.table.weight)


TABLE: list[tuple[str, Any, torch.Tensor, Any]] = [
    ("mlp", lambda: mlp(None), torch.randn(3, 96), None),
    ("int4", lambda: mlp("int4"), torch.randn(1, 96), None),
    ("int8", lambda: mlp("int8"), torch.randn(7, 96), None),
    (
        "large layers",
        lambda: nn.Sequential(nn.Linear(700, 900), nn.Linear(900, 2000)).eval(),
        torch.randn(2, 700),
        None,
    ),
    ("convolutions", convolutions, torch.randn(1, 3, 20, 20), None),
    ("states", Cache, torch.randn(1, 3, 8), None),
    ("words", Words, torch.tensor([[3, 1, 499]]), None),
    ("textures", Mixed, torch.randn(5, 33), {"storage": "texture"}),
    ("attention", lambda: nn.TransformerEncoderLayer(32, 4, 64, batch_first=True).eval(), torch.randn(2, 9, 32), None),
]


@pytest.mark.parametrize(("module", "x", "options"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
@pytest.mark.parametrize("features", [None, "none,like_gpu"])
def test_the_need_is_what_is_allocated(module, x, options, features) -> None:
    """To the byte. The most while weights are packed is compared in test/graph/budget_test.cpp."""
    session = pumice.load(bytes(pumice.export(module(), (x,), options=options)), features=features)
    needs, before = session.needs, session.memory
    assert before["weights"] == needs["weights"] and before["state"] == needs["states"]
    session(x)
    after = session.memory
    assert {**after, "textures": 0} == {
        "weights": needs["weights"],
        "state": needs["states"],
        "arena": needs["arena"],
        "io": needs["io"],
        "textures": 0,
    }
    assert after["textures"] == needs["weight_textures"] + needs["textures"]


def total(needs: dict[str, int]) -> int:
    running = sum(needs.values()) - needs["loading"]
    return max(needs["loading"], running)


def test_a_budget_of_the_need_is_enough_and_a_byte_less_is_not() -> None:
    x = torch.randn(3, 96)
    data = bytes(pumice.export(mlp("int4"), (x,)))
    need = total(pumice.load(data).needs)
    pumice.load(data, max_memory=need)(x)
    with pytest.raises(
        pumice.InvalidFileError, match=rf"needs {need} bytes .*weights.*the limit is {need - 1}"
    ) as caught:
        pumice.load(data, max_memory=need - 1)
    assert (caught.value.code, caught.value.path) == ("LimitExceeded", "max_memory")


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: hostile.states(400, (1 << 26,)), "states 107374182400"),
        (lambda: hostile.columns(300, 1 << 20), "weights"),
        (lambda: hostile.large_values(300, 1 << 25), "values"),
    ],
    ids=["states", "packed weights", "values"],
)
def test_far_more_than_the_machine_has_is_refused_by_default(make, words) -> None:
    data = make()  # of 1.2 GB, which a process that only collects this test does not need
    with pytest.raises(pumice.InvalidFileError, match=words) as caught:
        pumice.load(data)
    assert caught.value.code == "LimitExceeded"


def test_a_run_at_larger_shapes_is_held_to_the_budget_too() -> None:
    rows = torch.export.Dim("rows", min=1, max=1 << 20)
    data = bytes(pumice.export(mlp(None), (torch.randn(3, 96),), dynamic_shapes=({0: rows},)))
    session = pumice.load(data, max_memory=2 << 20)
    small, module = torch.randn(5, 96), mlp(None)
    want = module(small)
    torch.testing.assert_close(session(small), want, atol=2e-5, rtol=1e-5)
    before = session.memory
    with pytest.raises(pumice.InvalidFileError, match=rf"the limit is {2 << 20}") as caught:
        session(torch.randn(1 << 16, 96))
    assert caught.value.code == "LimitExceeded"
    assert session.memory == before
    torch.testing.assert_close(session(small), want, atol=2e-5, rtol=1e-5)
    for count in range(100, 1000, 100):  # grows by more than is needed, but never beyond the limit
        try:
            session(torch.randn(count, 96))
        except pumice.InvalidFileError:
            pass
        assert sum(session.memory.values()) <= 2 << 20


def test_a_load_that_takes_too_long_stops_and_the_device_goes_on() -> None:
    data = hostile.linears(3000)
    other = pumice.load(hostile.relus(3))
    x = np.ones((1, 8), np.float32)
    for seconds in (1e-9, 1e-3, 1e-2):
        with pytest.raises(pumice.DeviceError, match=rf"{re.escape(f'{seconds:g}')} s \(max_seconds\)") as caught:
            pumice.load(data, max_seconds=seconds)
        assert caught.value.code == "Timeout"
        np.testing.assert_array_equal(other.run_flat([x])[0], x)
    pumice.load(data, max_seconds=3600.0)


@pytest.mark.parametrize("limit", [0, -1, True, "1g", 1.5, 1 << 63])
def test_max_memory_is_a_positive_number(limit) -> None:
    with pytest.raises(pumice.InvalidInputError, match="max_memory"):
        pumice.load(hostile.relus(1), max_memory=limit)


@pytest.mark.parametrize("limit", [0, -1.0, float("nan"), "1", False])
def test_max_seconds_is_a_positive_number(limit) -> None:
    with pytest.raises(pumice.InvalidInputError, match="max_seconds"):
        pumice.load(hostile.relus(1), max_seconds=limit)
