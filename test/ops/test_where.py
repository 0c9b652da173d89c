# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
import torch
from support.many import ALL, Many, normal

INF = float("inf")


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_where(e2e, dtype) -> None:
    one = True if dtype is torch.bool else 3
    functions = [
        lambda m, a, b: torch.where(m, a, b), lambda m, a, b: torch.where(m, a, one),
        lambda m, a, b: torch.where(m, one, a), lambda m, a, b: torch.where(m[0], a, b),
        lambda m, a, b: torch.where(m[:, :1], a, b[0]), lambda m, a, b: torch.where(m, a[:, :1], b),
        lambda m, a, b: a.masked_fill(m, one), lambda m, a, b: a.masked_fill(m[:1], b[0, 0]),
        lambda m, a, b: torch.where(m, a[0, 0], b[1, 1]),
        lambda m, a, b: torch.where(m[:, None, :1], a[None, :, :], b[:, None]),
    ]  # fmt: skip
    for columns in (7, 8):
        mask = normal(5, columns, dtype=torch.bool, seed=7)
        e2e.check(
            Many(functions),
            mask,
            normal(5, columns, dtype=dtype),
            normal(5, columns, dtype=dtype, seed=2),
            reference="eager",
        )


def test_values(e2e) -> None:
    x = torch.tensor([1.0, float("nan"), INF, -0.0, 5, -INF])
    functions = [
        lambda x: torch.where(x > 0, x, -INF), lambda x: x.masked_fill(x.isnan(), 0),
        lambda x: x.masked_fill(x == 0, torch.finfo(x.dtype).min), lambda x: torch.where(x > 0, 1, 0),
        lambda x: torch.where(x > 0, 1.5, 0), lambda x: torch.where(x > 0, x, torch.tensor(2)),
        lambda x: torch.where(x > 0, x.half(), x), lambda x: torch.where(torch.tensor(True), x, 1),
    ]  # fmt: skip
    e2e.check(Many(functions), x, reference="eager")
    e2e.check(
        Many([lambda x: x.masked_fill(x > 0, -INF), lambda x: torch.where(x > 0, x, 0.1)]), x.half(), reference="eager"
    )


def test_expanded_mask(e2e) -> None:
    functions = [
        lambda m, x: torch.where(m.expand(4, 3, 6), x, 0),
        lambda m, x: x.masked_fill(~m[:, None].expand(-1, 3, -1)[:, :1], 1),
    ]  # fmt: skip
    e2e.check(Many(functions[:1]), normal(3, 6, dtype=torch.bool), normal(4, 3, 6), expect_ops={"expand": 0})
    e2e.check(
        Many([lambda m, x: torch.where(m.expand(4, 3, 6), x.expand(4, 3, 6), 0)]),
        normal(6, dtype=torch.bool),
        normal(3, 1),
    )


def test_changing_sizes(e2e) -> None:
    rows = torch.export.Dim("rows", min=2, max=64)
    functions = [
        lambda x: torch.where(x > 0, x, -1.0), lambda x: x.masked_fill(x[:, :1] > 0, 0),
        lambda x: x.tril(-1).triu(-3),
    ]  # fmt: skip
    e2e.check(
        Many(functions), normal(5, 6), dynamic_shapes={"inputs": ({0: rows},)}, runs=[(normal(2, 6),), (normal(64, 6),)]
    )
