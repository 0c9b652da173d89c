# SPDX-License-Identifier: Apache-2.0
"""Operators that exporter.py lets torch make of others."""

from __future__ import annotations

import copy

import pytest
import torch
from support.budget import MATMUL, NORM
from support.many import Many, normal
from torch import nn
from torch.nn import functional as F

import pumice


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
