# SPDX-License-Identifier: Apache-2.0
"""A compiled model beside the same one in eager: results, what calls write, and which tensors share memory."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn
from torch.utils._pytree import tree_leaves

import pumice
from support.budget import Budget


def tensors(value: Any) -> list[torch.Tensor]:
    return [leaf for leaf in tree_leaves(value) if isinstance(leaf, torch.Tensor)]


def sharing(groups: Sequence[torch.Tensor]) -> list[list[int]]:
    """For each tensor the numbers of those that lie in the same memory."""
    places = [t.untyped_storage().data_ptr() for t in groups]
    return [[m for m, other in enumerate(places) if place and other == place] for place in places]


def near(got: torch.Tensor, want: torch.Tensor, budget: Budget, where: str = "") -> None:
    assert (got.dtype, got.shape, got.stride()) == (want.dtype, want.shape, want.stride()), where
    if not want.dtype.is_floating_point:
        assert torch.equal(got, want), where
        return
    error = (got.double() - want.double()).abs()
    assert bool((error <= budget.allowed(want.double(), want.dtype)).all()), f"{where}: {float(error.max())}"


def mlp(width: int = 96) -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(width, 160), nn.ReLU(), nn.Linear(160, 64), nn.GELU(), nn.Linear(64, 10)).eval()


def rows(count: int, width: int = 96) -> torch.Tensor:
    return torch.randn(count, width, generator=torch.Generator().manual_seed(count))


def images(size: int, batch: int = 1, seed: int = 1) -> torch.Tensor:
    return torch.randn(batch, 3, size, size, generator=torch.Generator().manual_seed(seed))


def operators(compiled: Any) -> set[str]:
    return {name for graph in compiled.report.graphs for program in graph.programs for name in program.operators}


class Beside:
    """A model that pumice.compile made, and a copy of it in eager; `call` runs both and compares what can be seen."""

    def __init__(self, model: Callable[..., Any], **options: Any) -> None:
        self.model, self.eager = model, copy.deepcopy(model)
        self.compiled = pumice.compile(model, **options)

    def call(self, *args: Any, budget: Budget, run: Callable[..., Any] | None = None) -> Any:
        mine, theirs = copy.deepcopy(args), copy.deepcopy(args)
        with torch.no_grad():
            want = self.eager(*theirs)
        got = (run or self.compiled)(*mine)
        pairs = list(zip(tensors(got), tensors(want), strict=True))
        for number, (a, b) in enumerate(pairs):
            near(a, b, budget, f"result {number}")
        for number, (a, b) in enumerate(zip(tensors(mine), tensors(theirs), strict=True)):
            near(a, b, budget, f"argument {number} after the call")
        assert sharing([*tensors(mine), *tensors(got)]) == sharing([*tensors(theirs), *tensors(want)])
        if isinstance(self.model, torch.nn.Module):
            state, other = self.model.state_dict(), self.eager.state_dict()
            for name, value in state.items():
                if type(value) is torch.Tensor:
                    near(value, other[name], budget, name)
        return got
