# SPDX-License-Identifier: Apache-2.0
"""Operators that exporter.py lets torch make of others."""

from __future__ import annotations

import copy

import pytest
import torch
from support.budget import MATMUL, NORM, Budget
from support.many import Many, normal
from torch import nn
from torch.nn import functional as F

import pumice

SAMPLE = Budget(
    atol=4e-6, why="weights of neighbours from coordinates of up to 12, each rounded to 1e-6, times pixels up to 4"
)


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
def test_grid_sample(e2e, mode, padding) -> None:
    """In and around an image, at its corners, far outside."""
    grid = torch.rand(2, 5, 4, 2, generator=torch.Generator().manual_seed(3)) * 2.6 - 1.3
    grid[0, 0, :3] = torch.tensor([[-1.0, -1.0], [1.0, 1.0], [40.0, -7.0]])
    functions = [lambda x, g, align=align: F.grid_sample(x, g, mode, padding, align) for align in (False, True)]
    budget = (
        Budget(atol=4e-5, why="as SAMPLE, of 16 neighbours with weights up to 1.6") if mode == "bicubic" else SAMPLE
    )
    e2e.check(Many(functions), normal(2, 3, 7, 9), grid, reference="eager", budget=budget)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
def test_the_largest_of_windows_of_three_dimensions(e2e, dtype) -> None:
    functions = [
        lambda x: F.max_pool3d(x, 3, 2, 1), lambda x: tuple(F.max_pool3d(x, 3, 2, 1, return_indices=True)),
        lambda x: F.max_pool3d(x, (2, 3, 2), ceil_mode=True), lambda x: F.max_pool3d(x, 2, 1, 0, dilation=2),
        lambda x: F.max_pool3d(x[0], (1, 2, 5), (2, 1, 3)),
    ]  # fmt: skip
    e2e.check(Many(functions), normal(2, 3, 7, 9, 5, dtype=dtype), reference="eager")


def test_a_batch_norm_that_updates_its_statistics(e2e) -> None:
    """They are states, as any buffer that a model changes."""
    module = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)).train()
    x, again = normal(2, 3, 5, 7), normal(2, 3, 5, 7, seed=2)
    e2e.check(copy.deepcopy(module), x, runs=[x, again, x], budget=NORM)


def test_small_ones(e2e) -> None:
    functions = [
        lambda a, b, c: torch.addmv(a, b, c, beta=2, alpha=3), lambda a, b, c: torch.dist(b, b * 2 - 1),
        lambda a, b, c: torch.native_dropout(a, 0.5, False)[0], lambda a, b, c: torch.ldexp(b, (c * 3).int()),
        lambda a, b, c: torch.narrow_copy(b, 1, 1, 3),
    ]  # fmt: skip
    e2e.check(Many(functions), normal(4), normal(4, 5), normal(5), budget=MATMUL)


def test_what_torch_cannot_take_apart_is_refused(e2e, monkeypatch) -> None:
    """An error of torch in the middle of an export is a reason like any other."""

    def fails(*_):
        raise AssertionError("a graph that is not functional")

    monkeypatch.setattr(torch.export.ExportedProgram, "run_decompositions", fails)
    e2e.refuses(nn.Linear(3, 2), normal(1, 3), match="take the exported program apart: AssertionError: a graph that")


def test_results_of_torch_keep_their_names(e2e) -> None:
    """torch.return_types become named tuples."""
    x = normal(3, 5)
    session = pumice.load(bytes(pumice.export(Many([lambda x: x.sort(1), lambda x: (x.max(1), x.aminmax())]), (x,))))
    ordered, (largest, ends) = session(x)
    assert torch.equal(ordered.values, x.sort(1).values) and torch.equal(ordered.indices, x.sort(1).indices)
    assert torch.equal(largest.indices, x.max(1).indices) and (ends.min, ends.max) == tuple(x.aminmax())
    assert type(ordered).__name__ == "sort" and ordered[1] is ordered.indices
