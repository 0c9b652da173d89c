# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from fractions import Fraction

import pytest
import torch
from support.budget import EXACT, ULP, Budget
from support.many import ALL, FLOATS, Many, normal
from support.one_call import OneCall

import pumice

SUMS = Budget(rtol=4 * ULP, of_max=16 * ULP, why="up to 60 terms in fp32, in order; eager adds them in fp16 or fp64")
REDUCTIONS = ["sum", "prod", "mean", "amax", "amin"]


def places(*shape: int, rows: int) -> torch.Tensor:
    return torch.randint(rows, shape, generator=torch.Generator().manual_seed(4))


def once(*shape: int, rows: int) -> torch.Tensor:
    """No index twice in a row of the last dimension: eager PyTorch leaves open which one counts."""
    return torch.argsort(torch.rand((*shape[:-1], rows), generator=torch.Generator().manual_seed(5)))[..., : shape[-1]]


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_scatter(e2e, dtype) -> None:
    """A tensor or a number; an index smaller than both in every dimension, empty, or of one element."""
    functions = [
        lambda x, i, s: x.scatter(-1, i, s), lambda x, i, s: x.scatter(2, i[:1, :2, :3], s[..., :4]),
        lambda x, i, s: x.scatter(2, i, 3), lambda x, i, s: x.scatter(2, i[:0], s),
        lambda x, i, s: x.scatter(2, i[:, :, :0], s),
        lambda x, i, s: x.transpose(0, 2).scatter(0, i.transpose(0, 2), s.transpose(0, 2)),
        lambda x, i, s: x[0, 0, 0].scatter(0, i[0, 0, 0] * 0, s[0, 0, 0]),
    ]  # fmt: skip
    x, index, src = normal(2, 3, 9, dtype=dtype), once(2, 3, 5, rows=9), normal(2, 3, 7, dtype=dtype, seed=2)
    e2e.check(Many(functions), x, index, src, reference="eager", all_features=dtype is torch.float16)


@pytest.mark.parametrize("dtype", [*FLOATS, torch.int64, torch.int32, torch.int8, torch.uint8], ids=str)
@pytest.mark.parametrize("reduce", REDUCTIONS)
def test_scatter_reduce(e2e, reduce, dtype) -> None:
    """With the element that was there and without; many on one place, none on others; NaN wins."""
    x, src = normal(3, 5, 4, dtype=dtype), normal(3, 60, 6, dtype=dtype, seed=2)
    index = places(2, 60, 4, rows=4)
    functions = [
        lambda x, i, s: x.scatter_reduce(1, i, s, reduce),
        lambda x, i, s: x.scatter_reduce(1, i, s, reduce, include_self=False),
        lambda x, i, s: x.scatter_reduce(-1, i[:, :5], s[..., :6], reduce),
    ]  # fmt: skip
    if reduce == "sum":
        functions.append(lambda x, i, s: x.scatter_add(1, i, s))
    if reduce == "prod" and dtype.is_floating_point:
        x, src = 1 + x / 16, 1 + src / 16
    refused = (reduce == "mean" and not dtype.is_floating_point) or (reduce == "prod" and dtype is torch.int64)
    if refused:
        e2e.refuses(Many(functions), x, index, src, match="of i64|mean of")
        return
    e2e.check(Many(functions), x, index, src, budget=SUMS if dtype.is_floating_point else EXACT)
    if reduce in ("amax", "amin") and dtype.is_floating_point:
        src[:, ::7] = torch.nan
        src[:, 1::7] = -torch.inf
        e2e.check(Many(functions), x, index, src)


def test_long_rows_and_a_changing_size(e2e) -> None:
    """More indices than a workgroup sorts at once; a histogram."""
    size = torch.export.Dim("n", min=2, max=6000)
    functions = [lambda i: torch.zeros(7, dtype=torch.int64).scatter_add(0, i, torch.ones_like(i))]
    runs = [(places(n, rows=7),) for n in (2, 1025, 6000, 31)]
    e2e.check(Many(functions), places(100, rows=7), dynamic_shapes={"inputs": ({0: size},)}, runs=runs)


def test_the_last_of_equal_indices_counts() -> None:
    x, index, src = torch.zeros(2, 4), torch.tensor([[1, 1, 1, 0], [2, 2, 0, 2]]), torch.arange(8.0).reshape(2, 4)
    program = pumice.export(Many([lambda x, i, s: x.scatter(1, i, s)]), (x, index, src))
    (got,) = pumice.load(bytes(program))(x, index, src)
    assert got.tolist() == [[3, 2, 0, 0], [6, 0, 7, 0]]


@pytest.mark.parametrize("wrong", [-1, 5])
def test_an_index_out_of_range_is_an_error(wrong) -> None:
    module = Many([lambda x, i: x.scatter_add(0, i, x[:2])])
    session = pumice.load(bytes(pumice.export(module, (torch.ones(5), torch.tensor([0, 1])))))
    assert session(torch.ones(5), torch.tensor([4, 4]))[0].tolist() == [1, 1, 1, 1, 3]
    with pytest.raises(pumice.Error, match=f"index {wrong}|{wrong}"):
        session(torch.ones(5), torch.tensor([0, wrong]))


def test_a_sum_beyond_32_bits_is_an_error() -> None:
    x = torch.tensor([2**31 - 5, 0])
    session = pumice.load(
        bytes(pumice.export(Many([lambda x, i: x.scatter_add(0, i, x)]), (x * 0, torch.tensor([0, 0]))))
    )
    with pytest.raises(pumice.Error, match="32"):
        session(x, torch.tensor([0, 1]))


@pytest.mark.parametrize("shape", [(2, 3, 4), (6, 3, 2), (2, 3)], ids=str)
def test_a_file_whose_index_does_not_fit_is_an_error(shape) -> None:
    file = OneCall()
    inputs = [
        file.input(torch.float32, (5, 3, 4)),
        file.input(torch.int32, shape),
        file.input(torch.float32, (9, 3, 3)),
    ]
    file.call("scatter", [*inputs, 1], torch.float32, (5, 3, 4))
    with pytest.raises(pumice.Error, match="scatter"):
        pumice.load(file.bytes())


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_masked_scatter(e2e, dtype) -> None:
    functions = [
        lambda x, m, s: x.masked_scatter(m, s), lambda x, m, s: x.masked_scatter(m[:1], s),
        lambda x, m, s: x[:1].masked_scatter(m, s), lambda x, m, s: x.masked_scatter(m & False, s[:1]),
    ]  # fmt: skip
    mask = normal(5, 37) > 0.3
    e2e.check(Many(functions), normal(5, 37, dtype=dtype), mask, normal(400, dtype=dtype, seed=2), reference="eager")


def test_a_mask_with_more_places_than_elements_is_an_error() -> None:
    x, mask = normal(4, 5), torch.zeros(4, 5, dtype=torch.bool)
    session = pumice.load(bytes(pumice.export(Many([lambda x, m: x.masked_scatter(m, x[0])]), (x, mask))))
    assert torch.equal(session(x, mask)[0], x)
    mask[0] = True
    assert torch.equal(session(x, mask)[0], x)
    mask[1, 0] = True
    with pytest.raises(pumice.Error, match="5"):
        session(x, mask)


@pytest.mark.parametrize(
    ("shape", "dim", "indices"),
    [((64, 300), 1, 300), ((64, 257), 1, 4500), ((2, 300, 40), 1, 700), ((64, 6000), 1, 100), ((70, 4096), 1, 4096)],
    ids=str,
)
def test_sums_of_rows_are_rounded_once(shape, dim, indices) -> None:
    """By rows in shared memory, in integers: the exact sum, which fp64 holds here, however often an index is there."""
    many = (*shape[:dim], indices, *shape[dim + 1 :])
    rows = shape[dim]
    x, src, number = normal(*shape), normal(*many, seed=2), torch.arange(indices)
    functions = [lambda x, i, s: x.scatter_add(dim, i, s)]
    session = pumice.load(bytes(pumice.export(Many(functions), (x, places(*many, rows=rows), src))))
    line = (-1, *[1] * (len(shape) - dim - 1))
    patterns = {
        "random": places(*many, rows=rows),
        "few": places(*many, rows=30),
        "equal": torch.full(many, rows - 1),
        "two": (number % 2 * 7).reshape(line).expand(many).contiguous(),
        "half": torch.where(places(*many, rows=2) == 1, places(*many, rows=rows), 5),
    }
    for name, index in patterns.items():
        assert torch.equal(session(x, index, src)[0], functions[0](x.double(), index, src.double()).float()), name
    kernels = [row.kernel for row in session.profile(x, patterns["half"], src)]
    assert any("scatter_rows" in kernel for kernel in kernels), kernels


def test_sums_of_numbers_of_all_sizes() -> None:
    """Several windows of exponents: no farther from the exact sum than sums in any order may be, and what is too small
    for all others is not lost. Infinities and NaN are as eager PyTorch has them."""
    x, src, index = normal(64, 300), normal(64, 700, seed=2), places(64, 700, rows=300)
    for number, values in enumerate((x, src)):
        powers = torch.randint(-149, 100, values.shape, generator=torch.Generator().manual_seed(number))
        values *= torch.exp2(powers.double()).float()
    x[:, 7], index[index == 7], index[:, 0], src[:, 0] = 0, 8, 7, 2.0**-149  # the smallest number, alone
    session = pumice.load(bytes(pumice.export(Many([lambda x, i, s: x.scatter_add(1, i, s)]), (x, index, src))))
    got = session(x, index, src)[0]
    exact = [[[Fraction(float(value))] for value in row] for row in x[:2]]
    for row, places_of, values in zip(exact, index, src, strict=False):
        for place, value in zip(places_of.tolist(), values.tolist(), strict=True):
            row[place].append(Fraction(value))
    for row, sums in zip(exact, got, strict=False):
        for terms, value in zip(row, sums.tolist(), strict=True):
            allowed = (len(terms) - 1) * sum(map(abs, terms)) / 2**24 + Fraction(1, 2**126)  # subnormal numbers may go
            assert abs(Fraction(value) - sum(terms)) <= allowed, terms
    assert (got[:, 7] == 2.0**-149).all()
    src[5, ::3], src[6, ::5], src[6, 1::5], x[7, 9] = torch.nan, torch.inf, -torch.inf, torch.inf
    want = x.scatter_add(1, index, src)
    for got_bad, want_bad in zip(session(x, index, src)[0][5:8], want[5:8], strict=True):
        for test in (torch.isnan, torch.isposinf, torch.isneginf):
            assert torch.equal(test(got_bad), test(want_bad))


def test_a_hundred_replays_give_the_same_bits() -> None:
    x, index, src = normal(50), places(5000, rows=50), normal(5000, seed=2)
    session = pumice.load(bytes(pumice.export(Many([lambda x, i, s: x.scatter_add(0, i, s)]), (x, index, src))))
    first = session(x, index, src)[0]
    assert all(torch.equal(session(x, index, src)[0], first) for _ in range(100))
    x, index, src = normal(64, 300), places(64, 900, rows=300), normal(64, 900, seed=2)
    session = pumice.load(bytes(pumice.export(Many([lambda x, i, s: x.scatter_add(1, i, s)]), (x, index, src))))
    first = session(x, index, src)[0]
    assert all(torch.equal(session(x, index, src)[0], first) for _ in range(100))
