# SPDX-License-Identifier: Apache-2.0
"""session.profile: bytes are those that a kernel reads and writes, not the sizes of what it is given."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from support.quantized import Apply, quantized
from torch import nn

import pumice


def moved(module: nn.Module, *inputs: Any) -> dict[str, int]:
    """Bytes by operator."""
    rows = pumice.load(bytes(pumice.export(module.eval(), inputs))).profile(*inputs)
    return {row.operator: row.bytes for row in rows}


class Cache(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("cache", torch.zeros(64, 8))

    def forward(self, at: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        self.cache.index_copy_(0, at, rows)
        return self.cache.sum()


INDEX = torch.tensor([7, 1, 7])


@pytest.mark.parametrize(
    ("op", "module", "inputs", "want"),
    [
        ("embedding", nn.Embedding(500, 8), (INDEX,), 3 * 4 + 2 * 3 * 8 * 4),
        ("index_select", Apply(lambda x, i: x[:, i]), (torch.randn(2, 90), INDEX), 3 * 4 + 2 * 2 * 3 * 4),
        ("gather", Apply(lambda x, i: x.gather(0, i)), (torch.randn(90), INDEX), 3 * 4 + 2 * 3 * 4),
        ("index_put", Cache(), (torch.tensor([5]), torch.randn(1, 8)), 4 + 2 * 8 * 4),
        ("slice", Apply(lambda x: x[:, 1:5] * 1), (torch.randn(6, 100),), 2 * 6 * 4 * 4),
        ("expand", Apply(lambda x: x.expand(50, 8).clone()), (torch.randn(1, 8),), (50 + 1) * 8 * 4),
        ("linear", nn.Linear(64, 16, bias=False), (torch.randn(3, 64),), (3 * 64 + 64 * 16 + 3 * 16) * 4),
        ("linear", nn.Linear(64, 16), (torch.randn(3, 64),), (3 * 64 + 64 * 16 + 16 + 3 * 16) * 4),
        ("mul", Apply(lambda x: x * x), (torch.randn(40),), 2 * 40 * 4),
    ],
)
def test_bytes(op: str, module: nn.Module, inputs: tuple[torch.Tensor, ...], want: int) -> None:
    assert moved(module, *inputs)[op] == want


def test_a_quantized_table_is_read_by_rows() -> None:
    table = quantized(nn.Embedding(500, 64), 4, 32)
    got = moved(table, INDEX)["embedding_q4gsw"]
    assert 3 * (4 + 64 * 4 + 64 // 2) < got <= 3 * (4 + 64 * 4 + 64 // 2 + 2 * 8)  # and a scale for each group
