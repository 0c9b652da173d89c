# SPDX-License-Identifier: Apache-2.0
"""Sums of f32 by atomics, where the feature float_atomics is asked for: scatter_add, scatter_reduce, index_add and
index_put with accumulate. Their order is any, so they are compared with sums in fp64, within what any order rounds.
Rows that glsl/scatter_rows.glsl takes have the same bits in every run with the feature, too."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from support.budget import ULP
from support.device import device
from support.many import Many, normal

import pumice

FEATURES = ("+float_atomics", "none,+float_atomics,like_gpu", "+float_atomics,submit_us=1")
ROWS, PLACES = {"scatter_rows"}, {"add_atomic"}
PATTERNS: dict[str, Callable[..., torch.Tensor]] = {
    "random": lambda shape, rows: torch.randint(rows, shape, generator=torch.Generator().manual_seed(3)),
    "equal": lambda shape, rows: torch.full(shape, rows - 1),
    "few": lambda shape, rows: torch.arange(torch.Size(shape).numel()).reshape(shape) % 3 * (rows // 3),
    "once": lambda shape, rows: torch.arange(torch.Size(shape).numel()).reshape(shape) % rows,
}


@pytest.fixture(autouse=True)
def _needs_atomics() -> None:
    if "float_atomics" not in device().features:
        pytest.skip("the device cannot add floats by atomics")


def check(function: Callable[..., torch.Tensor], kernels: set[str], *inputs: torch.Tensor) -> None:
    data = bytes(pumice.export(Many([function]), inputs))
    doubles, sizes = ([t.double().abs() if a and t.is_floating_point() else t.double() if t.is_floating_point() else t
                       for t in inputs] for a in (False, True))  # fmt: skip
    terms = function(*(torch.ones_like(t) if t.is_floating_point() else t for t in doubles))
    want, most = function(*doubles), ULP / 2 * terms * function(*sizes)
    for features in FEATURES:
        session = pumice.load(data, features=features)
        ran = {part.split("[")[0] for row in session.profile(*inputs) for part in row.kernel.split(" + ")}
        assert ran & (ROWS | PLACES) == kernels, f"{features}: {ran}"
        for _ in range(5):
            error = (session(*inputs)[0].double() - want).abs()
            assert (error <= most + ULP / 2 * want.abs()).all(), f"{features}: {float((error - most).max())}"
    session = pumice.load(data)
    ran = {row.kernel for row in session.profile(*inputs)}
    assert not any("atomic" in kernel for kernel in ran), f"not asked for: {ran}"
    if kernels == ROWS:
        assert torch.equal(session(*inputs)[0], pumice.load(data, features=FEATURES[0])(*inputs)[0])


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize(
    ("shape", "dim", "places"),
    [
        ((70, 300), 1, 1000),  # rows
        ((65, 5000), -1, 20),  # in parts, where shared memory is small
        ((33, 260, 13), 1, 600),  # columns, the last tile of which is not full
        ((4, 2000, 70), 1, 30),  # in parts
    ],
    ids=str,
)
def test_rows(pattern, shape, dim, places) -> None:
    x, many = normal(*shape), list(shape)
    many[dim] = places
    index = PATTERNS[pattern](tuple(many), shape[dim])
    many[dim] = places + 1  # src may be longer
    check(lambda x, i, s: x.scatter_add(dim, i, s), ROWS, x, index, normal(*many, seed=2))


@pytest.mark.parametrize("pattern", PATTERNS)
def test_places(pattern) -> None:
    """Few rows; an index smaller than both in every dimension."""
    check(
        lambda x, i, s: x.scatter_reduce(0, i, s, "sum"), PLACES, normal(7), PATTERNS[pattern]((900,), 7), normal(901)
    )
    index = PATTERNS[pattern]((2, 60, 3), 5)
    check(lambda x, i, s: x.scatter_add(1, i, s), PLACES, normal(3, 5, 4), index, normal(3, 61, 6, seed=2))


@pytest.mark.parametrize("pattern", PATTERNS)
def test_slices(pattern) -> None:
    """index_add along each dimension, index_put of one and of two indices; negative ones count from the end."""
    x, index = normal(5, 9, 6), PATTERNS[pattern]((40,), 5)
    check(lambda x, i, v: x.index_add(0, i, v), PLACES, x, index, normal(40, 9, 6, seed=2))
    check(lambda x, i, v: x.index_add(2, i, v), PLACES, x, index, normal(5, 9, 40, seed=2))
    check(lambda x, i, v: x.index_put((i - 5,), v, accumulate=True), PLACES, x, index, normal(40, 9, 6, seed=2))
    check(lambda x, i, v: x.index_put((i, i), v, accumulate=True), PLACES, x, index, normal(40, 6, seed=2))


def test_in_place() -> None:
    """A state takes what is added without a copy of it."""

    class Histogram(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("bins", torch.zeros(6, 3))

        def forward(self, i: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
            return self.bins.index_add_(0, i, v) * 2

    index, values = torch.tensor([5, 0, 5, 5]), torch.ones(4, 3)
    session = pumice.load(bytes(pumice.export(Histogram(), (index, values))), features="+float_atomics")
    for call in (1, 2, 3):
        assert session(index, values)[:, 0].tolist() == [2 * call, 0, 0, 0, 0, 6 * call]


def test_nothing_to_add() -> None:
    x, none = normal(70, 300), torch.zeros(70, 0, dtype=torch.int64)
    functions = [lambda x, i: x.scatter_add(1, i, x), lambda x, i: x.index_add(0, i[0], x[:0])]
    session = pumice.load(bytes(pumice.export(Many(functions), (x, none))), features="+float_atomics")
    assert all(torch.equal(got, x) for got in session(x, none))


@pytest.mark.parametrize("wrong", [-1, 300])
def test_an_index_out_of_range_is_an_error(wrong) -> None:
    x, index, few = torch.ones(70, 300), torch.zeros(70, 9, dtype=torch.int64), torch.tensor([0, 1])
    functions = [lambda x, i, j: x.scatter_add(1, i, x), lambda x, i, j: x[0].scatter_add(0, j, x[1, :2]),
                 lambda x, i, j: x.index_add(1, j, x[:, :2])]  # fmt: skip
    index[69, 8] = few[1] = wrong
    for number, function in enumerate(functions):
        session = pumice.load(
            bytes(pumice.export(Many([function]), (x, index * 0, few * 0))), features="+float_atomics"
        )
        session(x, index * 0, few * 0)
        if number == 2 and wrong < 0:  # counts from the end
            assert session(x, index * 0, few)[0][:, -1].tolist() == [2.0] * 70
            continue
        with pytest.raises(pumice.Error, match=f"index {wrong}|{wrong}"):
            session(x, index, few)


def test_values_that_are_no_numbers() -> None:
    x, src = torch.zeros(70, 300), torch.ones(70, 4)
    index = torch.tensor([0, 1, 2, 2]).expand(70, 4).contiguous()
    src[0] = torch.tensor([torch.nan, torch.inf, torch.inf, -torch.inf])
    for function in (lambda x, i, s: x.scatter_add(1, i, s), lambda x, i, s: x[:9].scatter_add(1, i[:9], s)):
        (got,) = pumice.load(bytes(pumice.export(Many([function]), (x, index, src))), features="+float_atomics")(
            x, index, src
        )
        assert torch.equal(got.nan_to_num(7.0), function(x, index, src).nan_to_num(7.0))


def test_other_dtypes_are_as_without() -> None:
    x, index = (normal(70, 300) * 9).int(), PATTERNS["few"]((70, 40), 300)
    functions = [lambda x, i: x.scatter_add(1, i, x), lambda x, i: x.half().scatter_add(1, i, x.half())]
    data = bytes(pumice.export(Many(functions), (x, index)))
    want, got = (pumice.load(data, features=features)(x, index) for features in (None, "+float_atomics"))
    assert all(torch.equal(a, b) for a, b in zip(got, want, strict=True))
