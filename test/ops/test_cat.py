# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
import torch
from support.many import ALL, Many, normal

FUNCTIONS = [
    lambda a, b, c: torch.cat([a, b]), lambda a, b, c: torch.cat([b, a, b], -2), lambda a, b, c: torch.cat([a, c], 1),
    lambda a, b, c: torch.cat([c, a, c, a, c], -1), lambda a, b, c: torch.stack([a, b]),
    lambda a, b, c: torch.stack([b, a], -1), lambda a, b, c: torch.cat([a]),
    lambda a, b, c: torch.cat([a, torch.zeros(0), b]), lambda a, b, c: torch.hstack([a, c]),
    lambda a, b, c: torch.stack([a[0, 0], b[0, 0]]), lambda a, b, c: torch.cat([a[:0], b]),
    lambda a, b, c: torch.cat([a[:, i : i + 1] for i in range(7)] * 3, 1),
]  # fmt: skip


@pytest.mark.parametrize("dtype", ALL, ids=str)
@pytest.mark.parametrize("columns", [7, 8])
def test_cat(e2e, dtype, columns) -> None:
    functions = FUNCTIONS if dtype is torch.float32 else [*FUNCTIONS[:7], *FUNCTIONS[8:]]
    e2e.check(
        Many(functions),
        normal(3, columns, dtype=dtype),
        normal(3, columns, dtype=dtype, seed=2),
        normal(3, 4, dtype=dtype, seed=3),
    )


def test_promotion(e2e) -> None:
    functions = [lambda a, b: torch.cat([a, b]), lambda a, b: torch.stack([a, b])]
    e2e.check(Many(functions), normal(5, dtype=torch.float16), normal(5, seed=2), reference="eager")
    e2e.check(Many(functions), normal(5, dtype=torch.int64), normal(5, seed=2))


def test_changing_sizes(e2e) -> None:
    rows = torch.export.Dim("rows", min=2, max=50)
    functions = [
        lambda x: torch.cat([x, x + 1], 1), lambda x: torch.cat([x, x * 2, x[:1]]), lambda x: torch.stack([x, -x], 1),
    ]  # fmt: skip
    e2e.check(
        Many(functions), normal(4, 3), dynamic_shapes={"inputs": ({0: rows},)}, runs=[(normal(7, 3),), (normal(50, 3),)]
    )
