# SPDX-License-Identifier: Apache-2.0
"""Small models: an MLP in every scheme, a counter as state, nesting of results."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import pumice


def mlp() -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(96, 160), nn.ReLU(), nn.Linear(160, 64), nn.GELU(), nn.Linear(64, 10)).eval()


@pytest.mark.parametrize("scheme", [None, "int4", "int8"])
def test_mlp(scheme) -> None:
    module = mlp()
    if scheme:
        pumice.quantize(module, scheme, group_size=32)
    rows = torch.export.Dim("rows", min=1, max=200)
    session = pumice.load(bytes(pumice.export(module, (torch.randn(3, 96),), dynamic_shapes=({0: rows},))))
    for count in (1, 2, 7, 64, 200, 1):
        x = torch.randn(count, 96, generator=torch.Generator().manual_seed(count))
        with torch.inference_mode():
            torch.testing.assert_close(session(x), module(x), atol=2e-5, rtol=1e-5)


class Counter(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.tensor([3], dtype=torch.int64))

    def forward(self, x):
        self.count.add_(1)
        return {"sum": x + self.count, "pair": (x * 2, [x - 1])}


def test_counter_is_state_and_results_keep_their_nesting() -> None:
    session = pumice.load(bytes(pumice.export(Counter(), (torch.zeros(2, dtype=torch.int64),))))
    x = torch.tensor([10, 20])
    for step in range(1, 4):
        out = session(x)
        assert torch.equal(out["sum"], x + 3 + step)
        assert isinstance(out["pair"], tuple) and isinstance(out["pair"][1], list)
        assert torch.equal(out["pair"][0], x * 2) and torch.equal(out["pair"][1][0], x - 1)
    session.reset()
    assert torch.equal(session(x)["sum"], x + 4)


def test_numpy_in_numpy_out_of_every_kind() -> None:
    session = pumice.load(bytes(pumice.export(nn.Softmax(-1), (torch.zeros(4, 6),))))
    x = np.random.default_rng(0).standard_normal((4, 6)).astype(np.float32)
    want = session(x)
    assert isinstance(want, np.ndarray)
    np.testing.assert_allclose(want, np.exp(x) / np.exp(x).sum(-1, keepdims=True), atol=1e-6)
    wide = np.zeros((4, 12), np.float32)
    wide[:, ::2] = x
    frozen = x.copy()
    frozen.flags.writeable = False
    for other in (wide[:, ::2], frozen, x.astype(">f4"), np.asfortranarray(x)):
        np.testing.assert_array_equal(session(other), want)
    for bad in (x.astype(object), x.astype(np.float64), np.float32(1.0), x[:3], [[1.0]], None):
        with pytest.raises(pumice.InvalidInputError):
            session(bad)
    with pytest.raises(pumice.InvalidInputError, match="1"):
        session()
    np.testing.assert_array_equal(session(x), want)
