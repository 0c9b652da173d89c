# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
import torch
from support.many import ALL, Many, normal

import pumice

NUMBERS = [torch.float32, torch.float16, torch.int64, torch.int32, torch.int8, torch.uint8]


def special(x: torch.Tensor) -> torch.Tensor:
    """With NaN, infinities and both zeros here and there; equal elements, too."""
    if x.dtype.is_floating_point:
        flat = x.view(-1)
        for first, value in enumerate((torch.nan, torch.inf, -torch.inf, 0.0, -0.0, 1.0)):
            flat[first::17] = value
    return x


def distinct(*shape: int, dtype: torch.dtype) -> torch.Tensor:
    """Every row in another order; eager PyTorch leaves open which of equal elements topk takes."""
    generator = torch.Generator().manual_seed(2)
    rows = torch.argsort(torch.rand(shape, generator=generator), dim=-1)
    return (rows - (100 if dtype is torch.int8 else shape[-1] // 2 if dtype is not torch.uint8 else 0)).to(dtype)


SORTS = [
    lambda x: tuple(x.sort(dim=1, stable=True)), lambda x: tuple(x.sort(dim=-1, descending=True, stable=True)),
    lambda x: tuple(x.sort(dim=0, stable=True)), lambda x: x.argsort(dim=1, stable=True), lambda x: x.msort(),
    lambda x: tuple(x[0, 0, 0].sort(dim=-1, stable=True)), lambda x: tuple(x[:, :1].sort(dim=1, stable=True)),
]  # fmt: skip


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_sort(e2e, dtype) -> None:
    """Values and places as eager PyTorch's stable sort: equal elements stay in their order, NaN is the largest."""
    for shape in ((3, 37, 4), (2, 64, 1), (1, 0, 3)):
        functions = SORTS if 0 not in shape else SORTS[:4]
        x = special(normal(*shape, dtype=dtype))
        e2e.check(Many(functions), x, reference="eager", all_features=dtype is torch.float16 and 37 in shape)


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_long_rows(e2e, dtype) -> None:
    """More than a workgroup sorts at once: merges, of a last block that is not whole; an odd number of them."""
    functions = [SORTS[0], lambda x: tuple(x[:, :2500].sort(dim=1, descending=True, stable=True))]
    e2e.check(Many(functions), special(normal(2, 9000, dtype=dtype)), reference="eager")


@pytest.mark.parametrize("dtype", NUMBERS, ids=str)
def test_topk(e2e, dtype) -> None:
    functions = [
        lambda x: tuple(x.topk(5)), lambda x: tuple(x.topk(7, dim=0, largest=False)), lambda x: tuple(x.topk(1, 0)),
        lambda x: tuple(x.t().topk(3, dim=-1, sorted=True)), lambda x: tuple(x.topk(0)),
        lambda x: tuple(x[0, 0].topk(1)),
    ]  # fmt: skip
    x = distinct(9, 200, dtype=dtype)
    x = x + torch.arange(9)[:, None].to(dtype) * (0 if x.dtype in (torch.int8, torch.uint8) else 200)
    functions = functions if dtype not in (torch.int8, torch.uint8) else [functions[0], functions[4], functions[5]]
    e2e.check(Many(functions), x, reference="eager", all_features=dtype is torch.float32)


@pytest.mark.parametrize("k", [1, 63, 64, 65, 3000])
def test_topk_of_long_rows(e2e, k) -> None:
    """Up to 64 by the first of each span, in several rounds; more by a sort."""
    x = distinct(2, 40000 if k < 100 else 3000, dtype=torch.float32)
    functions = [lambda x: tuple(x.topk(k)), lambda x: tuple(x.topk(k, largest=False))]
    e2e.check(Many(functions), x, reference="eager")


@pytest.mark.parametrize("k", [1, 50, 64])
def test_topk_where_the_largest_are_close_together(k) -> None:
    """A workgroup keeps what is not above k parts of its span, one element in 1024 each: rows where one part has the
    largest, where k parts have all of them, and where all are equal; the first of equal ones count."""
    places = torch.arange(20000)
    rows = torch.stack([places % 1024 == 3, places % 1024 < k, places < 0, places >= 20000 - k]).float()
    program = pumice.export(Many([lambda x: tuple(x.topk(k))]), (rows,))
    for x in (rows, rows * torch.arange(20000), rows * -1):
        values, found = pumice.load(bytes(program))(x)[0]
        order = torch.sort(x, dim=1, descending=True, stable=True)
        assert torch.equal(values, order.values[:, :k]) and torch.equal(found, order.indices[:, :k])


def test_topk_takes_the_first_of_equal_elements_and_nan_as_the_largest() -> None:
    x = torch.tensor([[3.0, 1.0, 3.0, torch.nan, 3.0, 1.0, torch.nan, -0.0, 0.0]])
    program = pumice.export(Many([lambda x: tuple(x.topk(4)), lambda x: tuple(x.topk(4, largest=False))]), (x,))
    (_, largest), (_, smallest) = pumice.load(bytes(program))(x)
    assert (largest.tolist(), smallest.tolist()) == ([[3, 6, 0, 2]], [[7, 8, 1, 5]])


def test_the_order_of_a_row(e2e) -> None:
    """kthvalue and median, with a place each."""
    functions = [
        lambda x: tuple(x.kthvalue(3)), lambda x: tuple(x.kthvalue(9, dim=0, keepdim=True)), lambda x: x.median(),
        lambda x: tuple(x.median(dim=1)), lambda x: tuple(x.median(dim=0, keepdim=True)),
        lambda x: tuple(x[0, 0].median(dim=0)), lambda x: tuple(x[0, 0].kthvalue(1)), lambda x: x[0, 0].median(),
    ]  # fmt: skip
    e2e.check(Many(functions), torch.randperm(9 * 70, generator=torch.Generator().manual_seed(3)).reshape(9, 70))
    x = normal(9, 70)
    e2e.check(Many(functions), x)
    x[2, 5] = x[2, 60] = x[4, 1] = torch.nan
    e2e.check(Many(functions[2:5]), x)


def test_a_changing_size(e2e) -> None:
    """The number of merges follows the live size."""
    columns = torch.export.Dim("columns", min=5, max=9000)
    runs = [(distinct(2, n, dtype=torch.int64),) for n in (5, 1024, 1025, 9000, 17)]
    functions = [SORTS[0], lambda x: tuple(x.topk(3)), lambda x: tuple(x.topk(x.shape[1] - 3, largest=False))]
    e2e.check(
        Many(functions), distinct(2, 100, dtype=torch.int64), dynamic_shapes={"inputs": ({1: columns},)}, runs=runs
    )


def test_a_hundred_replays_give_the_same_bits() -> None:
    x = normal(4, 5000).round()
    session = pumice.load(bytes(pumice.export(Many([SORTS[0], lambda x: tuple(x.topk(50))]), (x,))))
    first = session(x)
    for _ in range(100):
        again = session(x)
        assert all(
            torch.equal(a, b) for one, other in zip(first, again, strict=True) for a, b in zip(one, other, strict=True)
        )
