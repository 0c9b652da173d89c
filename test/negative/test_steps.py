# SPDX-License-Identifier: Apache-2.0
"""Several steps of a method in one call: as many calls one after another, and wrong numbers of steps."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import pumice


class Recurrence(nn.Module):
    """state = 0.5 * state + x * w; returns the state and the number of steps so far."""

    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.linspace(0.5, 1.5, 7))
        self.register_buffer("state", torch.zeros(3, 7))
        self.register_buffer("seen", torch.zeros(1, dtype=torch.int64))

    def forward(self, x):
        self.state.copy_(0.5 * self.state + torch.tanh(x) * self.w)
        self.seen.add_(1)
        return self.state * 2, self.seen + 0


@pytest.fixture(scope="module")
def data() -> bytes:
    return bytes(pumice.export(Recurrence(), (torch.zeros(3, 7),)))


@pytest.mark.parametrize("steps", [1, 2, 5, 64])
def test_steps_are_calls_one_after_another(data, steps) -> None:
    """The inputs are read in each step, though a step writes over the memory that held them."""
    x = torch.randn(3, 7, generator=torch.Generator().manual_seed(steps))
    one, many = pumice.load(data), pumice.load(data)
    for _ in range(steps):
        want = one(x)
    for a, b in zip(many.run(x, steps=steps), want, strict=True):
        assert torch.equal(a, b)
    for a, b in zip(many(x + 1), one(x + 1), strict=True):  # the state went on, and a call follows as usual
        assert torch.equal(a, b)
    (got, seen), (_, calls) = many.run(x, steps=3), [one(x) for _ in range(3)][-1]
    assert torch.equal(seen, calls)
    assert torch.isfinite(got).all()


@pytest.mark.parametrize("steps", [0, -1, 4097, 2**40, True, 1.5, "2"])
def test_other_numbers_are_refused_and_change_nothing(data, steps) -> None:
    session = pumice.load(data)
    with pytest.raises(pumice.InvalidInputError, match="4096"):
        session.run(torch.ones(3, 7), steps=steps)
    assert int(session(torch.ones(3, 7))[1]) == 1
