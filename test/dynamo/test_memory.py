# SPDX-License-Identifier: Apache-2.0
"""What a compiled model writes into its arguments, and which tensors share memory, is as in eager PyTorch."""

from __future__ import annotations

import pytest
import torch
from support.budget import MATMUL
from support.compiled import Beside, images, near, rows
from torch import nn

import pumice


def written(x, y):
    x.add_(y)
    y[1:3] *= 2
    return x @ y.t()


def views(x):
    return x[0], (x * 2).chunk(2, 1), x.t(), x.reshape(-1)


def same_memory(x):
    y = x.exp()
    return y, y[1:], y.t()


def reshaped(x):
    x.unsqueeze_(0)
    return x * 2


def written_and_returned(x):
    x.mul_(3)
    return x[1:]


def transposed(x):
    return (x + 1).t(), (x * 2).expand(3, 4, 4), torch.empty_like(x.t()).copy_(x)


@pytest.mark.parametrize("function", [written, views, same_memory, reshaped, written_and_returned, transposed])
def test_what_is_written_and_what_shares_memory_is_as_in_eager(function) -> None:
    class Model(nn.Module):
        def forward(self, *args):
            return function(*args)

    args = [rows(4, 4), rows(5, 4)[:4]][: function.__code__.co_argcount]
    beside = Beside(Model())
    for _ in range(2):
        beside.call(*args, budget=MATMUL)
    in_eager = [reason for graph in beside.compiled.report.graphs for reason in graph.in_eager]
    assert not in_eager or function in (reshaped, written_and_returned), in_eager


def test_arguments_in_the_same_memory_are_for_eager_where_one_is_written() -> None:
    compiled = pumice.compile(lambda x, y: x.add_(1) * y.sum())
    for overlap in (False, True):
        results = []
        for function in (lambda x, y: x.add_(1) * y.sum(), compiled):
            memory = torch.arange(8.0)
            x, y = memory[:4], memory[2:6] if overlap else memory[4:]
            results.append((function(x, y), memory))
        near(results[1][0], results[0][0], MATMUL)
        assert torch.equal(results[0][1], results[1][1])
    assert any("shares its memory" in reason for g in compiled.report.graphs for reason in g.in_eager)


def test_channels_last_stays_channels_last() -> None:
    torch.manual_seed(4)
    beside = Beside(nn.Conv2d(8, 8, 3).eval().to(memory_format=torch.channels_last))
    got = beside.call(images(6).repeat(1, 3, 1, 1)[:, :8].to(memory_format=torch.channels_last), budget=MATMUL)
    assert got.is_contiguous(memory_format=torch.channels_last)
