# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
import torch
from support.budget import REDUCTION, Budget
from support.many import ALL, Many, normal
from torch import nn

import pumice


def put(*index, copy=False):
    def function(x, i, v):
        x = x.clone()
        at = tuple(i if part == "i" else part for part in index)
        x[at] = v[: i.shape[0]] if copy else v[0, 0, 0]
        return x

    return function


S = slice(None)
FUNCTIONS = [
    put("i"), put(S, "i"), put(S, S, "i"), put("i", "i"), put(S, "i", "i"), put("i", S, "i"), put("i", copy=True),
    lambda x, i, v: x.index_copy(1, i, v[:, : i.shape[0]]), lambda x, i, v: x.index_copy(0, i, v[: i.shape[0]]),
    lambda x, i, v: x.index_put((i,), v[: i.shape[0]]),
    lambda x, i, v: x.index_put((i[:, None], i), v[: i.shape[0], 0, 0][:, None]),
    lambda x, i, v: x.masked_fill(x > 0, 1).index_put((x > 0,), v[0, 0, 0]),
]  # fmt: skip


@pytest.mark.parametrize("dtype", ALL, ids=str)
@pytest.mark.parametrize("width", [4, 5])
def test_index_put(e2e, dtype, width) -> None:
    index = torch.tensor([2, 0, 1])
    e2e.check(
        Many(FUNCTIONS),
        normal(4, 3, width, dtype=dtype),
        index,
        normal(4, 3, width, dtype=dtype, seed=2),
        reference="eager",
    )


@pytest.mark.parametrize("count", [3, 40])
def test_the_last_of_equal_indices_counts(e2e, count) -> None:
    index = torch.arange(count) % 5 - 5
    x, v = normal(6, 4), normal(count, 4, seed=2)
    session = pumice.load(bytes(e2e.export(Many([lambda x, i, v: x.index_put((i,), v)]), x, index, v)))
    want = x.clone()
    for position in range(count):
        want[index[position]] = v[position]
    assert torch.equal(session(x, index, v)[0], want)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.int32, torch.int64], ids=str)
def test_equal_indices_add_up(e2e, dtype) -> None:
    index = torch.tensor([2, 0, 2, -1, 2])
    functions = [
        lambda x, i, v: x.index_put((i,), v, accumulate=True),
        lambda x, i, v: x.index_put((i, i.clamp(max=1)), v[:, 0], accumulate=True),
        lambda x, i, v: x.index_put((i,), v[0, 0], accumulate=True),
        lambda x, i, v: x.transpose(0, 1).index_add(1, i % 4, v.transpose(0, 1)),
    ]
    x, v = normal(4, 3, 5, dtype=dtype), normal(5, 3, 5, dtype=dtype, seed=2)
    eager = Budget(rtol=3 * 2.0**-11, of_max=2.0**-11, why="eager rounds every sum to fp16")
    budget = eager if dtype is torch.float16 else REDUCTION
    e2e.check(Many(functions), x, index, v, reference="eager", budget=budget, expect_ops={"index_add": 4})


class Cache(nn.Module):
    """A key/value cache as a buffer: written at positions, read whole."""

    def __init__(self, update: str, width: int, dtype: torch.dtype) -> None:
        super().__init__()
        self.update = update
        self.register_buffer("cache", torch.zeros(2, 3, 40, width, dtype=dtype))

    def forward(self, at, x):
        if self.update == "index_put":
            self.cache[:, :, at] = x
        elif self.update == "index_copy":
            self.cache.index_copy_(2, at, x)
        elif self.update == "slice":
            self.cache[:, :, 5:9] = x[:, :, :4]
        elif self.update == "stride":
            self.cache[:, :, 1:8:2] = x[:, :, :4]
        else:
            self.cache[:, :, 7] = x[:, :, 0]
        return self.cache + (1 if self.cache.dtype.is_floating_point else 0)


@pytest.mark.parametrize("update", ["index_put", "index_copy", "slice", "stride", "select"])
@pytest.mark.parametrize(
    ("width", "dtype"),
    [(8, torch.float32), (5, torch.float32), (3, torch.float16), (4, torch.float16), (5, torch.int8)],
    ids=str,
)
def test_state_in_place(e2e, update, width, dtype) -> None:
    def call(*at):
        return torch.tensor(at), normal(2, 3, len(at), width, dtype=dtype, seed=at[0] + 1)

    runs = [call(4, 5, 6, 7), call(39, 0, 2, 1), call(4, 8, 15, 16)]
    e2e.check(Cache(update, width, dtype), *call(0, 1, 2, 3), runs=runs, reference="eager")


def test_growing_number_of_positions(e2e) -> None:
    count = torch.export.Dim("count", min=2, max=40)
    runs = [(torch.arange(n) * 7 % 40, normal(2, 3, n, 8, seed=n)) for n in (3, 17, 40, 16, 2)]
    inputs = torch.arange(5), normal(2, 3, 5, 8)
    e2e.check(
        Cache("index_put", 8, torch.float32),
        *inputs,
        dynamic_shapes={"at": {0: count}, "x": {2: count}},
        runs=runs,
        reference="eager",
    )


def test_out_of_range_writes_nothing(e2e) -> None:
    session = pumice.load(
        bytes(e2e.export(Cache("index_put", 4, torch.float32), torch.tensor([0, 1]), normal(2, 3, 2, 4)))
    )
    for bad in (40, -41, 2**31 - 1):
        with pytest.raises(pumice.InvalidInputError, match=str(bad)):
            session(torch.tensor([0, bad]), normal(2, 3, 2, 4))
    session.reset()
    got = session(torch.tensor([3, -1]), normal(2, 3, 2, 4))
    assert torch.equal(got, Cache("index_put", 4, torch.float32)(torch.tensor([3, 39]), normal(2, 3, 2, 4)))


def test_out_of_range_adds_nothing(e2e) -> None:
    add = Many([lambda x, i, v: x.index_put((i,), v, accumulate=True)])
    session = pumice.load(bytes(e2e.export(add, normal(4), torch.tensor([1, 1]), normal(2))))
    with pytest.raises(pumice.InvalidInputError, match="4"):
        session(normal(4), torch.tensor([1, 4]), normal(2))


def test_refusals(e2e) -> None:
    add = Many([lambda x, v: x.index_put((x > 0,), v, accumulate=True)])
    e2e.refuses(add, normal(4), torch.tensor(1.0), match="mask")
