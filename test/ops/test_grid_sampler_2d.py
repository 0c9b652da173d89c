# SPDX-License-Identifier: Apache-2.0
"""An image at the places of a grid."""

from __future__ import annotations

import pytest
import torch
from support.budget import Budget
from support.many import Many, normal
from torch.nn import functional as F

SAMPLE = Budget(
    atol=4e-6, why="weights of neighbours from coordinates of up to 12, each rounded to 1e-6, times pixels up to 4"
)
CUBIC = Budget(atol=4e-5, why="as SAMPLE, of 16 neighbours with weights up to 1.6")
MODES = ["bilinear", "nearest", "bicubic"]
PADDINGS = ["zeros", "border", "reflection"]


def a_grid(*shape: int) -> torch.Tensor:
    """In and around an image, at its corners, far outside."""
    grid = torch.rand(*shape, 2, generator=torch.Generator().manual_seed(3)) * 2.6 - 1.3
    grid[0, 0, :3] = torch.tensor([[-1.0, -1.0], [1.0, 1.0], [40.0, -7.0]])
    return grid


def functions(mode: str, padding: str) -> Many:
    return Many([lambda x, g, align=align: F.grid_sample(x, g, mode, padding, align) for align in (False, True)])


@pytest.mark.parametrize("padding", PADDINGS)
@pytest.mark.parametrize("mode", MODES)
def test_as_eager(e2e, mode, padding) -> None:
    budget = CUBIC if mode == "bicubic" else SAMPLE
    e2e.check(functions(mode, padding), normal(2, 3, 7, 9), a_grid(2, 5, 4), reference="eager", budget=budget)


@pytest.mark.parametrize("mode", MODES)
def test_rows_of_one_element_and_sizes_known_at_run_time(e2e, mode) -> None:
    budget = CUBIC if mode == "bicubic" else SAMPLE
    for padding in PADDINGS:
        e2e.check(functions(mode, padding), normal(1, 2, 1, 5), a_grid(1, 1, 7), reference="eager", budget=budget)
    rows, height = torch.export.Dim("rows", min=1, max=64), torch.export.Dim("height", min=2, max=64)
    e2e.check(
        functions(mode, "border"), normal(1, 3, 6, 5), a_grid(1, 5, 3), reference="eager", budget=budget,
        dynamic_shapes={"inputs": ({2: height}, {1: rows})}, runs=[(normal(1, 3, 9, 5), a_grid(1, 2, 3))],
    )  # fmt: skip


@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
def test_what_is_outside_does_not_leak(e2e, mode) -> None:
    """At the place 0, which a kernel might read instead, is an infinity."""
    x, outside = normal(2, 3, 4, 5), a_grid(2, 5, 4).abs() + 2.5
    x[:, :, 0, 0] = torch.inf
    e2e.check(functions(mode, "zeros"), x, outside, reference="eager", budget=SAMPLE)


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_halves_are_computed_in_fp32(e2e, mode) -> None:
    """Coordinates with few bits, so that the reference has the same places."""
    grid = (a_grid(2, 5, 4) * 16).round() / 16
    e2e.check(functions(mode, "border"), normal(2, 3, 8, 16).half(), grid.half(), budget=CUBIC)
