# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
import torch
from support.many import ALL, Many, normal

FUNCTIONS = [
    lambda x, y: torch.slice_scatter(x, y[:2], 0, 1, 3), lambda x, y: torch.slice_scatter(x, y[:, :1], 1, -2, -1),
    lambda x, y: torch.slice_scatter(x, y[..., :3], 2, 0, 5, 2), lambda x, y: torch.slice_scatter(x, y[:, 1:], 1, 1),
    lambda x, y: torch.slice_scatter(x, y[:, :0], 1, 2, 1), lambda x, y: torch.select_scatter(x, y[0], 0, 1),
    lambda x, y: torch.select_scatter(x, y[:, 0], 1, -1), lambda x, y: torch.select_scatter(x, y[..., 0], -1, -2),
]  # fmt: skip


@pytest.mark.parametrize("dtype", ALL, ids=str)
@pytest.mark.parametrize("width", [5, 8])
def test_slice_scatter(e2e, dtype, width) -> None:
    e2e.check(
        Many(FUNCTIONS), normal(3, 4, width, dtype=dtype), normal(3, 4, width, dtype=dtype, seed=2), reference="eager"
    )


def test_assignments(e2e) -> None:
    def assign(x, y):
        x = x.clone()
        x[:, 1:3] = y[:, :2]
        x[0, :, 2] = 7
        x[-1] += y[0]
        return x

    e2e.check(Many([assign]), normal(3, 4, 5), normal(3, 4, 5, seed=2))


def test_changing_sizes(e2e) -> None:
    rows = torch.export.Dim("rows", min=4, max=64)
    functions = [
        lambda x, y: torch.slice_scatter(x, y, 0, x.shape[0] - 2), lambda x, y: torch.slice_scatter(x, y, 0, 1, 3),
    ]  # fmt: skip
    shapes = {"inputs": ({0: rows}, {})}
    e2e.check(
        Many(functions),
        normal(5, 3),
        normal(2, 3),
        dynamic_shapes=shapes,
        runs=[(normal(4, 3), normal(2, 3)), (normal(64, 3), normal(2, 3))],
    )
