# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
import torch
from support.many import ALL, Many, normal

import pumice

ROWS, GRID = torch.tensor([2, 0, -1, 1]), torch.tensor([[0, 3], [-4, 1]])
FUNCTIONS = [
    lambda x, i, j: x[i], lambda x, i, j: x[:, i], lambda x, i, j: x[..., i], lambda x, i, j: x[j % 3],
    lambda x, i, j: x[:, j], lambda x, i, j: x[i, i], lambda x, i, j: x[:, i[:, None], j[0]],
    lambda x, i, j: x[i[:2], j, 1], lambda x, i, j: x[i, j[:, :1], i], lambda x, i, j: x[i, :, i],
    lambda x, i, j: x[:, i][:, :, i], lambda x, i, j: x[i.int()], lambda x, i, j: x.index_select(0, i % 3),
    lambda x, i, j: x.index_select(-1, i % 4), lambda x, i, j: x.index_select(1, (i % 4)[0]),
    lambda x, i, j: x.take(j), lambda x, i, j: x.take(i[3]),
]  # fmt: skip
GATHER = [
    lambda x, i: x.gather(0, i % 3), lambda x, i: x.gather(1, i), lambda x, i: x.gather(-1, i),
    lambda x, i: x.gather(2, i[:1, :2]), lambda x, i: torch.take_along_dim(x[..., :4], i[:, :1], 1),
]  # fmt: skip


@pytest.mark.parametrize("dtype", ALL, ids=str)
@pytest.mark.parametrize("width", [5, 8])
def test_index(e2e, dtype, width) -> None:
    x = normal(3, 4, width, dtype=dtype)
    e2e.check(Many(FUNCTIONS), x, ROWS, GRID, reference="eager", all_features=dtype is torch.float32)


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_gather(e2e, dtype) -> None:
    e2e.check(
        Many(GATHER), normal(3, 4, 5, dtype=dtype), normal(3, 4, 4, dtype=torch.int64).abs() % 4, reference="eager"
    )


def test_rank_0_and_empty(e2e) -> None:
    e2e.check(
        Many([lambda x: x.gather(0, torch.tensor([0])), lambda x: x.index_select(0, torch.tensor([0]))]),
        torch.tensor(3.0),
    )
    e2e.check(
        Many([lambda x, i: x[i], lambda x, i: x[:, i], lambda x, i: x.gather(0, i[:, None])]), normal(3, 4), ROWS[:0]
    )
    e2e.check(Many([lambda x, i: x[i]]), normal(3, 0), ROWS)


def test_mask_of_two_indices(e2e) -> None:
    """As transformers reads a padding mask: mask[batch, position], both broadcast; sizes change."""

    class Mask(torch.nn.Module):
        def forward(self, mask):
            batch = torch.arange(mask.shape[0])[:, None, None, None]
            return (
                mask.bool()[batch, torch.arange(mask.shape[1])[None, None, None, :]]
                & (torch.arange(mask.shape[1]) >= 0)[:, None]
            )

    rows, columns = torch.export.Dim("rows", min=2, max=9), torch.export.Dim("columns", min=2, max=64)
    runs = [(normal(r, c, dtype=torch.int64) % 2,) for r, c in ((2, 5), (7, 33))]
    mask = normal(3, 6, dtype=torch.int64) % 2
    e2e.check(Mask(), mask, dynamic_shapes=({0: rows, 1: columns},), runs=runs, expect_ops={"index_select": 0})


def test_counting_in_another_order(e2e) -> None:
    """What looks like picking all, and is not: transposed, shifted, a diagonal, every second."""
    count = torch.arange(4)
    functions = [
        lambda x: x[count[None, :], count[:, None]], lambda x: x[torch.arange(1, 4)], lambda x: x[count, count],
        lambda x: x[torch.arange(0, 4, 2)], lambda x: x[:, count], lambda x: x[count[:, None], count],
        lambda x: x[count[:3]],
    ]  # fmt: skip
    e2e.check(Many(functions), normal(4, 4))


def test_out_of_range(e2e) -> None:
    """An error that names the index; the session goes on."""
    for function in (
        lambda x, i: x[i],
        lambda x, i: x[:, i],
        lambda x, i: x[i, i],
        lambda x, i: x.gather(0, i[:, None]),
    ):
        session = pumice.load(bytes(e2e.export(Many([function]), normal(3, 3), torch.tensor([0, 1]))))
        for bad in (3, -4, 2**31 - 1, -(2**31)):
            with pytest.raises(pumice.InvalidInputError, match=str(bad)):
                session(normal(3, 3), torch.tensor([1, bad]))
        good = torch.tensor([2, 1])
        assert torch.equal(session(normal(3, 3), good)[0], function(normal(3, 3), good))


def test_refusals(e2e) -> None:
    e2e.refuses(Many([lambda x: x[x > 0]]), normal(4), match="mask|data|capture")


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_windows(e2e, dtype) -> None:
    functions = [
        lambda x: x.unfold(0, 2, 1), lambda x: x.unfold(-1, 3, 2), lambda x: x.unfold(1, 1, 3),
        lambda x: x.unfold(1, 4, 5), lambda x: x[0, 0, 0].unfold(0, 1, 1), lambda x: x[:0].unfold(2, 2, 2),
    ]  # fmt: skip
    e2e.check(Many(functions), normal(3, 4, 7, dtype=dtype), reference="eager")


def test_as_strided(e2e) -> None:
    """Of the storage of what is contiguous, a copy of a permuted tensor too; never of what only looks so."""
    functions = [
        lambda x: x.as_strided((2, 3), (1, 2)), lambda x: x.as_strided((3,), (3,), 2), lambda x: x.as_strided((), ()),
        lambda x: x.permute(1, 0).contiguous().as_strided((4, 3), (3, 1)),
        lambda x: x.as_strided((2, 2), (0, 0), 11), lambda x: x.as_strided((0,), (1,)),
    ]  # fmt: skip
    e2e.check(Many(functions), normal(3, 4))
    weight = torch.nn.Parameter(normal(3, 4))
    module = Many([lambda x: x + weight.permute(1, 0).contiguous().as_strided((4, 3), (3, 1))])
    module.weight = weight
    e2e.check(module, normal(4, 3))
    e2e.refuses(Many([lambda x: x.permute(1, 0).as_strided((2,), (1,))]), normal(3, 4), match="not contiguous")
    e2e.refuses(Many([lambda x: x[1:].as_strided((2,), (1,))]), normal(3, 4), match="inside of another")
