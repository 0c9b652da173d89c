# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
import torch
from support.many import Many
from support.quantized import check_product
from support.sums import sums

import pumice

HALF = torch.float16


def check(function, a: torch.Tensor, b: torch.Tensor, k: int, operators: dict[str, int] | None = None) -> None:
    """function(a, b) is a product of a and b after moving their dimensions, whose sums have k terms."""
    program = pumice.export(Many([function]).eval(), (a, b))
    got = pumice.load(bytes(program))(a, b)
    got = got[0] if isinstance(got, list | tuple) else got
    check_product(got, sums(function, a, b, terms=k), 2)
    assert got.dtype == a.dtype
    assert operators is None or program.report.operators == operators, program.report.operators


SHAPES = [
    ((5, 7), (7, 9)), ((1, 300), (300, 1)), ((64, 64), (64, 64)), ((130, 33), (33, 129)), ((17, 16), (16, 65)),
    ((3, 1), (1, 5)), ((3, 5, 7), (7, 9)), ((5, 7), (3, 7, 9)), ((2, 3, 5, 8), (3, 8, 9)), ((2, 1, 5, 8), (4, 8, 12)),
    ((3, 1, 2, 5, 7), (2, 1, 7, 4)), ((7,), (7,)), ((7,), (7, 3)), ((4, 7), (7,)), ((2, 4, 7), (7,)), ((7,), (2, 7, 4)),
]  # fmt: skip


@pytest.mark.parametrize("dtype", [torch.float32, HALF], ids=str)
@pytest.mark.parametrize(("a", "b"), SHAPES, ids=str)
def test_matmul(a, b, dtype) -> None:
    torch.manual_seed(1)
    check(torch.matmul, torch.randn(a).to(dtype), torch.randn(b).to(dtype), a[-1])


PERMUTED = [
    (lambda a, b: a @ b.transpose(-1, -2), (2, 4, 5, 8), (2, 4, 9, 8), 8),
    (lambda a, b: a.transpose(-1, -2) @ b, (2, 4, 8, 5), (2, 4, 8, 9), 8),
    (lambda a, b: a.mT @ b.mT, (2, 4, 7, 5), (2, 4, 9, 7), 7),
    (lambda a, b: a.permute(0, 2, 1, 3) @ b.permute(0, 2, 3, 1), (2, 5, 4, 8), (2, 6, 4, 8), 8),
    (lambda a, b: a.permute(2, 0, 1) @ b, (5, 7, 3), (3, 7, 4), 7),
]


@pytest.mark.parametrize("dtype", [torch.float32, HALF], ids=str)
@pytest.mark.parametrize(("function", "a", "b", "k"), PERMUTED)
def test_permuted_operands_are_read_in_place(function, a, b, k, dtype) -> None:
    check(function, torch.randn(a).to(dtype), torch.randn(b).to(dtype), k, {"matmul": 1})


def test_empty(e2e) -> None:
    for a, b in [((0, 7), (7, 9)), ((5, 7), (7, 0)), ((5, 0), (0, 9)), ((0, 3, 4), (0, 4, 5))]:
        e2e.check(Many([torch.matmul]), torch.randn(a), torch.randn(b))


def test_plus(e2e) -> None:
    from support.budget import MATMUL

    functions = [
        torch.addmm,
        lambda c, a, b: torch.addmm(c, a, b, beta=0.5, alpha=2.0),
        lambda c, a, b: torch.addmm(c, a, b, beta=0),
    ]
    a, b = torch.randn(5, 7), torch.randn(7, 9)
    for bias in ((9,), (5, 1), (5, 9), (1, 9)):
        e2e.check(Many(functions), torch.randn(bias), a, b, budget=MATMUL)
    e2e.check(Many([torch.baddbmm]), torch.randn(2, 5, 9), torch.randn(2, 5, 7), torch.randn(2, 7, 9), budget=MATMUL)
    e2e.check(Many([torch.bmm]), torch.randn(2, 5, 7), torch.randn(2, 7, 9), budget=MATMUL, all_features=True)


def test_dynamic_sizes(e2e) -> None:
    from support.budget import MATMUL

    n = torch.export.Dim("n", min=1, max=200)
    runs = [(torch.randn(2, m, 8), torch.randn(2, m, 8)) for m in (1, 2, 65, 130)]
    scores = Many([lambda a, b: a @ b.transpose(-1, -2), lambda a, b: a.transpose(-1, -2) @ b])
    e2e.check(scores, *runs[0][:1], runs[0][1], dynamic_shapes=None, budget=MATMUL)
    e2e.check(
        scores, torch.randn(2, 5, 8), torch.randn(2, 5, 8), dynamic_shapes=[({1: n}, {1: n})], runs=runs, budget=MATMUL
    )
