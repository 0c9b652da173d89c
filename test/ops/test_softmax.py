# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
import torch
from support.budget import SOFTMAX, Budget
from support.many import FLOATS, Many, normal

INF, NAN = float("inf"), float("nan")
LOG_SOFTMAX = Budget(atol=2e-6, rtol=1e-6, why="SOFTMAX, then a logarithm: absolute near 0")


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("shape", [(3, 5, 7), (4, 8), (5, 6), (1, 1), (2, 1000), (3, 129), (7, 64)], ids=str)
def test_softmax(e2e, dtype, shape) -> None:
    x = normal(*shape, dtype=dtype) * 4
    e2e.check(
        Many([lambda x: x.softmax(-1), lambda x: torch.softmax(x, 0)]), x, budget=SOFTMAX, all_features=len(shape) == 3
    )
    e2e.check(Many([lambda x: x.log_softmax(-1), lambda x: torch.log_softmax(x, 0)]), x, budget=LOG_SOFTMAX)


def test_dims(e2e) -> None:
    functions = [lambda x, d=d: x.softmax(d) for d in (0, 1, 2, -2)] + [lambda x: x.softmax(1, dtype=torch.float32)]
    e2e.check(Many(functions), normal(3, 4, 5, dtype=torch.float16), budget=SOFTMAX)
    e2e.check(Many([lambda x: x.softmax(0)]), torch.tensor(2.0))
    e2e.check(Many([lambda x: x.softmax(-1)]), normal(0, 4))


def test_special_values(e2e) -> None:
    x = normal(8, 5)
    x[0], x[1, 2:], x[2, 1], x[3, 3], x[4] = -INF, -INF, INF, NAN, 1e38
    x[5], x[6] = torch.tensor([200.0, -200, 0, 100, 199]), -1e38
    e2e.check(
        Many([lambda x: x.softmax(-1), lambda x: x.repeat(1, 60).softmax(-1)]), x, budget=SOFTMAX, reference="eager"
    )
    e2e.check(Many([lambda x: x.log_softmax(-1)]), x, budget=LOG_SOFTMAX, reference="eager")


def test_changing_sizes(e2e) -> None:
    rows, columns = torch.export.Dim("rows", min=2, max=64), torch.export.Dim("columns", min=2, max=300)
    runs = [(normal(r, c),) for r, c in ((3, 5), (9, 300), (64, 66))]
    shapes = {"inputs": ({0: rows, 1: columns},)}
    e2e.check(
        Many([lambda x: x.softmax(1), lambda x: x.softmax(0)]),
        normal(6, 8),
        dynamic_shapes=shapes,
        runs=runs,
        budget=SOFTMAX,
    )
