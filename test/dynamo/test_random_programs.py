# SPDX-License-Identifier: Apache-2.0
"""Random programs of operators, views and writes, some of them in eager: as eager PyTorch in everything that a caller
sees, results, what is written into arguments, strides, and which tensors share memory."""

from __future__ import annotations

import random

import pytest
import torch
from support.budget import Budget
from support.compiled import Beside
from torch import nn

# Values stay within about 1 by tanh and sin, whose kernels are within 4e-7 of eager; no step multiplies an error by
# more than 2 (a sum of two), and there are 8 steps at most.
ROUNDED = Budget(atol=4e-7 * 2**8, why="errors of 4e-7 for each step, doubled by 8 sums")

STEPS = {
    "tanh": lambda x, y: torch.tanh(x),
    "sin": lambda x, y: torch.sin(x),
    "mean": lambda x, y: (x + y) * 0.5,
    "flip": lambda x, y: torch.maximum(x, y).neg(),
    "where": lambda x, y: torch.where(y > 3, x, y) * 0.5,  # no value is near 3: the branch does not hang on a rounding
    "transposed": lambda x, y: x.t(),
    "half": lambda x, y: x.clone()[:2].repeat(2, 1),
    "reshaped": lambda x, y: x.reshape(2, 8).view(4, 4),
    "contiguous": lambda x, y: x.t().contiguous().t(),
    "in eager": lambda x, y: torch.special.gammaincc(x.abs() + 1, y.abs() + 1),
    "written": lambda x, y: x.mul_(0.5),
    "row written": lambda x, y: _row(x),
    "copied": lambda x, y: y.copy_(x.clone()),
    "filled": lambda x, y: x.clone().fill_(0.25),
    "new row": lambda x, y: x.index_copy(0, torch.tensor([1]), y[:1]),
}


def _row(x: torch.Tensor) -> torch.Tensor:
    x[1].add_(0.125)
    return x


class Random(nn.Module):
    def __init__(self, seed: int) -> None:
        super().__init__()
        choose = random.Random(seed)
        self.steps = [choose.choice(sorted(STEPS)) for _ in range(choose.randint(2, 8))]
        self.operands = [(choose.randint(0, n + 1), choose.randint(0, n + 1)) for n in range(len(self.steps))]
        self.results = sorted(choose.sample(range(len(self.steps) + 2), choose.randint(1, 3)))
        self.views = choose.random() < 0.5

    def forward(self, x, y):
        values = [x, y]
        for step, (a, b) in zip(self.steps, self.operands, strict=True):
            values.append(STEPS[step](values[a], values[b]))
        results = [values[number] for number in self.results]
        return [*results, results[-1][1:], results[0].t()] if self.views else results


def programs() -> list[int]:
    return list(range(48))


@pytest.mark.parametrize("first", range(0, 48, 12))
def test_random_programs(first) -> None:
    on_device = 0
    for seed in programs()[first : first + 12]:
        x, y = (torch.rand(4, 4, generator=torch.Generator().manual_seed(100 * seed + n)) * 2 - 1 for n in range(2))
        torch._dynamo.reset()
        model = Random(seed)
        beside = Beside(model)
        for argument in (x, x.t(), x):
            beside.call(argument, y, budget=ROUNDED)
        on_device += any(p.partitions for graph in beside.compiled.report.graphs for p in graph.programs)
    assert on_device >= 6, "most of these programs have something for the device"
