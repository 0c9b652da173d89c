# SPDX-License-Identifier: Apache-2.0
"""Random numbers: known answers of the generator, distributions, and runs that repeat with their seed."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from support.many import Many, normal
from torch import nn

import pumice
from pumice.passes.random_numbers import BITS

N = 40000


def session_of(functions: list, x: torch.Tensor, **options) -> pumice.Session:
    return pumice.load(bytes(pumice.export(Many(functions), (x,), **options)))


def test_known_answers() -> None:
    """Of Philox4x32-10 for a counter and a key of zeros, from the paper's own test vectors."""
    draw = lambda seed: torch.ops.pumice.random.default(seed, 0, BITS, [4])  # noqa: E731
    got = session_of([draw], torch.zeros(2, dtype=torch.int32))(torch.zeros(2, dtype=torch.int32))[0]
    want = [word >> 1 for word in (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)]
    assert got.tolist() == want


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
def test_distributions(dtype) -> None:
    functions = [
        lambda x: torch.rand(N, dtype=dtype), torch.rand_like, lambda x: torch.randn(N, dtype=dtype), torch.randn_like,
    ]  # fmt: skip
    x = torch.zeros(N, dtype=dtype)
    got = session_of(functions, x)(x)
    assert all(y.shape == (N,) and y.dtype is dtype for y in got)
    for u in got[:2]:
        u = u.double()
        assert u.min() >= 0 and u.max() < 1
        counts = torch.histc(u, 20, 0, 1)
        assert ((counts - N / 20) ** 2 / (N / 20)).sum() < 60  # chi square of 19: one in 10^5
    for z in got[2:]:
        z = z.double()
        assert abs(z.mean()) < 5 / N**0.5 and abs(z.var() - 1) < 5 * (2 / N) ** 0.5 and z.abs().max() > 3.3
        assert abs((z < -1).double().mean() - 0.158655) < 0.01
    assert abs(np.corrcoef(np.stack([y.double().numpy() for y in got])) - np.eye(4)).max() < 5 / N**0.5


def test_integers() -> None:
    functions = [
        lambda x: torch.randint(-3, 4, (N,)), lambda x: torch.randint_like(x, 2, 9), lambda x: torch.randperm(1000),
        lambda x: torch.randperm(1), lambda x: torch.randint(5, (0, 3)),
    ]  # fmt: skip
    x = torch.zeros(N)
    low, like, order, one, none = session_of(functions, x)(x)
    assert low.dtype is torch.int64 and torch.equal(low.unique(), torch.arange(-3, 4))
    assert (low.bincount() if low.min() >= 0 else (low + 3).bincount()).min() > N / 7 * 0.93
    assert like.dtype is torch.float32 and torch.equal(like.unique(), torch.arange(2.0, 9))
    assert torch.equal(order.sort().values, torch.arange(1000)) and not torch.equal(order, torch.arange(1000))
    assert one.tolist() == [0] and none.shape == (0, 3)
    with pytest.raises(pumice.UnsupportedError, match=r"randint.*more than 2\^24 numbers"):
        session_of([lambda x: torch.randint(2**24 + 1, (3,))], x)


def test_runs_differ_and_repeat_with_their_seed() -> None:
    functions, x = [torch.rand_like, torch.randn_like], normal(3, 37)
    session = session_of(functions, x, options={"seed": 2**63 + 5})
    draws = lambda count: [np.stack([y.numpy() for y in session(x)]) for _ in range(count)]  # noqa: E731
    first = draws(3)
    assert len({draw.tobytes() for draw in first}) == 3 and not np.array_equal(first[0][0], first[0][1])
    session.reset()
    assert np.array_equal(draws(3), first)
    session.seed(7)
    other = draws(2)
    assert not np.array_equal(other[0], first[0])
    session.seed(2**63 + 5)
    assert np.array_equal(draws(3), first)
    session.seed(7)
    assert np.array_equal(draws(2), other)
    with pytest.raises(pumice.InvalidInputError, match="2\\^64"):
        session.seed(2**64)
    with pytest.raises(pumice.InvalidInputError, match="seed"):
        session_of(functions, x, options={"seed": -1})
    with pytest.raises(pumice.InvalidInputError, match="draws no random numbers"):
        session_of([torch.abs], x).seed(1)


def test_a_changing_size() -> None:
    rows = torch.export.Dim("rows", min=2, max=64)
    program = pumice.export(Many([torch.rand_like]), (normal(3, 5),), dynamic_shapes={"inputs": ({0: rows},)})
    session = pumice.load(bytes(program))
    for count in (2, 64):
        got = session(normal(count, 5))[0]
        assert got.shape == (count, 5) and len(got.unique()) > 4 * count


def test_dropout_of_a_model_in_training() -> None:
    """As eager: what stays is divided by the share of it. In eval nothing is drawn."""
    x = normal(N, 1).abs() + 1
    with pytest.raises(pumice.UnsupportedError, match=r"model\.eval\(\).* or give the export option seed"):
        pumice.export(nn.Dropout(0.25).train(), (x,))
    got = pumice.load(bytes(pumice.export(nn.Dropout(0.25).train(), (x,), options={"seed": 0})))(x)
    kept = got != 0
    assert torch.allclose(got[kept], x[kept] / 0.75) and abs(kept.double().mean() - 0.75) < 0.02
    program = pumice.export(nn.Dropout(0.25).eval(), (x,))
    assert not program.ir.states and "random" not in program.report.operators


@pytest.mark.parametrize("make", [nn.Dropout1d, nn.AlphaDropout, nn.FeatureAlphaDropout])
def test_other_dropouts(make) -> None:
    """Those of whole channels, and those that keep mean and deviation."""
    x = normal(100, N // 100, 6) + 1
    with pytest.raises(pumice.UnsupportedError, match=r"model\.eval\(\).* or give the export option seed"):
        pumice.export(make(0.25).train(), (x,))
    got = pumice.load(bytes(pumice.export(make(0.25).train(), (x,), options={"seed": 0})))(x)
    with torch.random.fork_rng():
        want = make(0.25).train()(x)
    dropped, left_out = (each == each.flatten().mode().values for each in (got, want))
    assert abs(dropped.double().mean() - 0.25) < 0.02 and torch.allclose(got[dropped], want[left_out][:1])
    channels = dropped.all(-1) | ~dropped.any(-1)
    assert channels.all() == (make is not nn.AlphaDropout)
    kept = ~dropped & ~left_out
    assert kept.any() and torch.allclose(got[kept], want[kept], atol=1e-5)
    assert torch.equal(pumice.load(bytes(pumice.export(make(0.25).eval(), (x,))))(x), x)


def test_choices() -> None:
    """multinomial: in proportion to the weights, never what has none; without replacement each once."""
    weights = torch.tensor([[0.0, 1.0, 2.0, 5.0], [3.0, 0.0, 0.0, 1.0]])
    functions = [
        lambda w: torch.multinomial(w, N, replacement=True), lambda w: torch.multinomial(w[0], 3),
        lambda w: torch.bernoulli(w.expand(N, 2, 4) / 5), lambda w: torch.normal(w, w + 1),
    ]  # fmt: skip
    many, few, coins, moved = session_of(functions, weights)(weights)
    for drawn, weight in zip(many, weights, strict=True):
        share = drawn.bincount(minlength=4) / N
        assert (share - weight / weight.sum()).abs().max() < 0.02 and (share[weight == 0] == 0).all()
    assert sorted(few.tolist()) == [1, 2, 3]
    assert (coins.mean(0) - weights / 5).abs().max() < 0.02 and moved.shape == (2, 4)
