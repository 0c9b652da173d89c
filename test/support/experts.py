# SPDX-License-Identifier: Apache-2.0
"""A mixture of experts of transformers whose experts are plain linear layers, so that torchao quantizes them, too."""

from __future__ import annotations

import copy

import torch
from torch import nn

import pumice


class PlainExperts(nn.Module):
    """Computes what transformers' module of stacked experts does, row by row."""

    def __init__(self, experts: nn.Module) -> None:
        super().__init__()
        self.act = experts.act_fn
        self.gate_up, self.down = (
            nn.ModuleList(_linear(matrix) for matrix in stack) for stack in (experts.gate_up_proj, experts.down_proj)
        )

    def forward(self, x: torch.Tensor, chosen: torch.Tensor, factors: torch.Tensor) -> torch.Tensor:
        rows = []
        for row, own, shares in zip(x, chosen.tolist(), factors, strict=True):
            parts = []
            for expert in own:
                gate, up = self.gate_up[expert](row[None]).chunk(2, -1)
                parts.append(self.down[expert](self.act(gate) * up))
            rows.append(shares @ torch.cat(parts))
        return torch.stack(rows)


def quantized(model: nn.Module, scheme: str, group_size: int) -> nn.Module:
    """A copy of the model with linear layers and experts quantized, not its routers."""
    made = copy.deepcopy(model)
    for layer in made.model.layers:
        layer.mlp.experts = PlainExperts(layer.mlp.experts)
    return pumice.quantize(made, scheme, group_size)


def _linear(matrix: torch.Tensor) -> nn.Linear:
    layer = nn.Linear(*matrix.shape[::-1], bias=False)
    layer.weight = nn.Parameter(matrix.detach().clone(), False)
    return layer
