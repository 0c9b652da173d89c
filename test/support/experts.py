# SPDX-License-Identifier: Apache-2.0
"""Mixtures of experts: both products alone, and one of transformers whose experts are plain linear layers, so that
torchao quantizes them, too."""

from __future__ import annotations

import copy

import torch
from torch import nn

import pumice
from pumice.llm.mixture import ExpertLinear
from pumice.llm.quantized import quantize_layer, quantized_weight
from pumice.llm.weight_forms import Scheme

EXPERTS, CHOSEN, WIDTH, INNER = 7, 3, 72, 48


class Experts(nn.Module):
    """Both products of a mixture, with the experts and factors given; its weights may be quantized."""

    def __init__(self, act: str, scheme: str | None) -> None:
        super().__init__()
        self.up = ExpertLinear(EXPERTS, act, True, torch.empty(EXPERTS, 2 * INNER, WIDTH))
        self.down = ExpertLinear(EXPERTS, "none", False, torch.empty(EXPERTS, WIDTH // 8 * 16, INNER))
        for layer in (self.up, self.down):
            layer.weight = nn.Parameter(torch.randn(layer.weight.shape) * layer.weight.shape[1] ** -0.5, False)
            if scheme is not None:
                weight = layer.weight.detach().clone()
                how = Scheme(scheme, 8)
                quantize_layer(layer, "layer", how, lambda weight=weight: weight)
                layer.integers, layer.scale = quantized_weight(weight, how)

    def forward(self, x: torch.Tensor, chosen: torch.Tensor, factors: torch.Tensor) -> torch.Tensor:
        return self.down(self.up(x, chosen), chosen, factors)


def inputs(rows: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(rows)
    factors, chosen = torch.rand(rows, EXPERTS, generator=generator).topk(CHOSEN)
    return torch.randn(rows, WIDTH, generator=generator), chosen, factors


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
