# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
import torch
from support.budget import EXACT, POW, REDUCTION, Budget
from support.many import ALL, FLOATS, Many, normal

INF, NAN = float("inf"), float("nan")
DIMS = [0, -1, (0, 2), (1, 2), (0, 1, 2, 3), (-2,), (1, 3)]
SUMS = [
    lambda x, d=d, k=k: x.sum(d, keepdim=k) for d in DIMS for k in (False, True)] + [lambda x: x.sum(),
    lambda x: x.mean(),
]  # fmt: skip
FLOAT = [
    lambda x: torch.var_mean(x, (1, 2)), lambda x: torch.std_mean(x, -1, correction=0)[0], lambda x: x.mean((0, 2)),
    lambda x: x.mean(-1, keepdim=True), lambda x: x.var(-1), lambda x: x.std((1, 2), correction=0),
    lambda x: x.var((0, 3), unbiased=False, keepdim=True), lambda x: torch.linalg.vector_norm(x, dim=(1, 2)),
    lambda x: torch.linalg.vector_norm(x, 1, dim=-1), lambda x: torch.linalg.vector_norm(x, INF),
    lambda x: (x * 0.5).prod(1), lambda x: x[0, 0, 0].prod(),
]  # fmt: skip
CHOICES = [
    lambda x: x.amax(-1), lambda x: x.amin((0, 2), keepdim=True), lambda x: x.amax((1, 2, 3)), lambda x: x.max(),
    lambda x: x.min(), lambda x: x.argmax(-1), lambda x: x.argmin(1, keepdim=True), lambda x: x.argmax(),
    lambda x: tuple(x.max(2)), lambda x: x.min(0, keepdim=True)[0], lambda x: x.max(1)[1],
]  # fmt: skip
TESTS = [
    lambda x: (x > 2).any(), lambda x: (x > 0).all(-1), lambda x: x.any(1), lambda x: x.all((0, 2), keepdim=True),
    lambda x: x.any((1, 3)),
]  # fmt: skip
NORM = Budget(rtol=REDUCTION.rtol, of_max=REDUCTION.of_max, atol=1e-6, why="REDUCTION, then a root or a division")


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_float(e2e, dtype) -> None:
    x = normal(2, 5, 3, 8, dtype=dtype)
    e2e.check(Many([*SUMS, *FLOAT]), x, budget=NORM, all_features=True)
    e2e.check(Many([*CHOICES, *TESTS]), x, budget=EXACT)
    e2e.check(Many([lambda x: torch.nn.functional.normalize(x.float(), dim=-1)]), x, budget=NORM)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_norms_of_every_order(e2e, dtype) -> None:
    """Sums of powers are in f32, of f16 too, whose own range ends at 65504."""
    x = normal(3, 5, 7, dtype=dtype) * 9
    x[0, 0, 0], x[1, 0] = 0, 0
    norms = [
        lambda x, order=order, d=d: torch.linalg.vector_norm(x, order, d, keepdim=True)
        for order, d in [(0, 1), (0.5, -1), (3, (0, 2)), (4, None), (6, -1), (-1, 1), (-2.5, 0), (-INF, 2)]
    ]
    distances = [lambda x: torch.dist(x, x.flip(0), 4), lambda x: torch.nn.functional.normalize(x.float(), 3.0, -1)]
    budget = Budget(rtol=(1 + 3) * POW.rtol, atol=1e-6, why="POW, a sum, and POW of it; by an order of at least 1/2")
    e2e.check(Many(norms + distances), x, budget=budget, all_features=True)
    special = torch.tensor([[NAN, 1.0, 0.0], [INF, 2.0, 0.0], [0.0, 0.0, 0.0]], dtype=dtype)
    e2e.check(Many([lambda x, o=o: torch.linalg.vector_norm(x, o, -1) for o in (0, 3, -3)]), special, budget=budget)
    e2e.check(Many([lambda x: torch.linalg.vector_norm(x, 3), lambda x: torch.linalg.vector_norm(x, 0, 1)]), x[:0])


@pytest.mark.parametrize("dtype", ALL[2:], ids=str)
def test_integer(e2e, dtype) -> None:
    x = normal(2, 5, 3, 7, dtype=dtype, seed=3)
    choices = CHOICES if dtype is not torch.bool else CHOICES[:3]  # argmax of bool is an error in PyTorch
    sums = [*SUMS[:-1], lambda x: (x % 4)[0, 0].prod(-1), lambda x: x.sum(1, dtype=torch.float32)]
    e2e.check(
        Many([*sums, *choices, *TESTS[1:]])
        if dtype is not torch.bool
        else Many([*sums, *choices, lambda x: x.any(), lambda x: x.all(0)]),
        x,
    )


@pytest.mark.parametrize(
    "shape",
    [(1000,), (3, 700), (700, 12), (70, 130), (64, 5, 3), (2, 65, 4), (5, 300, 2), (9, 31), (6, 33), (5, 4, 49)],
    ids=str,
)
def test_sizes(e2e, shape) -> None:
    """All ways to divide the work, with and without whole vec4 groups."""
    functions = [
        lambda x: x.sum(0), lambda x: x.mean(-1), lambda x: x.amax(0), lambda x: x.argmin(-1), lambda x: x.var(0),
    ]  # fmt: skip
    e2e.check(Many(functions), normal(*shape), budget=NORM)
    e2e.check(Many([lambda x: x.sum(0), lambda x: x.sum(-1), lambda x: x.argmax(0)]), normal(*shape, dtype=torch.int8))


def test_special_values(e2e) -> None:
    x = normal(6, 5)
    x[0, 2], x[1, 3], x[2, 0], x[3, 1:3], x[4] = (
        NAN,
        INF,
        -INF,
        torch.tensor([NAN, NAN]),
        torch.tensor([2.0, 7, 7, 1, 7]),
    )
    x[5] = torch.tensor([INF, -INF, 0, 0, 0])
    functions = [
        lambda x: x.sum(-1), lambda x: x.amax(-1), lambda x: x.amin(0), lambda x: x.argmax(-1),
        lambda x: x.argmin(-1), lambda x: x.mean(0),
    ]  # fmt: skip
    e2e.check(Many(functions), x, budget=REDUCTION, reference="eager")
    long = normal(3, 200)
    long[0, 7] = long[0, 150] = NAN
    long[1, 20] = long[1, 190] = 9
    e2e.check(Many([lambda x: tuple(x.max(-1)), lambda x: x.argmin(-1), lambda x: x.argmax()]), long, reference="eager")


def test_empty_and_rank_0(e2e) -> None:
    empty = [
        lambda x: x.sum(0), lambda x: x.mean(0), lambda x: x.prod(0), lambda x: x.any(0), lambda x: x.all(0),
        lambda x: x.sum(1), lambda x: x.sum(),
    ]  # fmt: skip
    e2e.check(Many(empty), normal(0, 3))
    scalar = [
        lambda x: x.sum(), lambda x: x.mean(0), lambda x: x.amax(), lambda x: x.argmax(), lambda x: tuple(x.max(-1)),
        lambda x: x.all(),
    ]  # fmt: skip
    e2e.check(Many(scalar), torch.tensor(2.5))


def test_changing_sizes(e2e) -> None:
    rows, columns = torch.export.Dim("rows", min=2, max=600), torch.export.Dim("columns", min=2, max=600)
    functions = [
        lambda x: x.sum(0), lambda x: x.mean(1), lambda x: x.amax(), lambda x: x.argmax(1), lambda x: x.var(0),
        lambda x: x.any(1),
    ]  # fmt: skip
    runs = [(normal(r, c),) for r, c in ((64, 5), (5, 64), (513, 7), (2, 600))]
    e2e.check(
        Many(functions), normal(6, 8), dynamic_shapes={"inputs": ({0: rows, 1: columns},)}, runs=runs, budget=NORM
    )
