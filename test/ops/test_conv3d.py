# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
import torch
from support.budget import MATMUL
from support.many import FLOATS, normal
from torch import nn

LAYERS = [
    nn.Conv3d(4, 6, 3, padding=1), nn.Conv3d(4, 6, (1, 3, 2), (1, 2, 1), groups=2),
    nn.Conv3d(4, 8, (3, 1, 2), (2, 1, 3), (2, 1, 0), (2, 1, 1), groups=4, bias=False),
    nn.Conv3d(4, 5, (2, 3, 3), (2, 1, 1)), nn.Conv3d(4, 3, (2, 3, 1), padding="same"), nn.Conv3d(4, 3, 1),
    nn.ConvTranspose3d(4, 6, 3, 2, 1, 1), nn.ConvTranspose3d(4, 6, (2, 3, 1), (1, 2, 2), groups=2, bias=False),
    nn.ConvTranspose3d(4, 5, (3, 1, 2), (3, 1, 1), (2, 0, 1), (1, 0, 0), dilation=(2, 1, 1)),
]  # fmt: skip


class Layers(nn.Module):
    """Each layer on the batch, two of them on a single volume."""

    def __init__(self, layers: list[nn.Module]) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)

    def forward(self, x: torch.Tensor) -> list[torch.Tensor]:
        return [*(layer(x) for layer in self.layers), self.layers[0](x[0]), self.layers[6](x[0])]


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_layers(e2e, dtype) -> None:
    e2e.check(Layers(LAYERS).to(dtype), normal(2, 4, 5, 6, 7, dtype=dtype), budget=MATMUL, all_features=True)


def test_a_changing_size(e2e) -> None:
    batch, depth = torch.export.Dim("batch", min=2, max=4), torch.export.Dim("depth", min=4, max=12)
    module = nn.Sequential(nn.Conv3d(3, 5, 3, 2, 1, 1), nn.ReLU(), nn.ConvTranspose3d(5, 2, (3, 2, 2), (2, 1, 1)))
    runs = [(normal(2, 3, 12, 6, 5),), (normal(4, 3, 5, 6, 5),)]
    shapes = {"input": {0: batch, 2: depth}}
    e2e.check(module, normal(3, 3, 7, 6, 5), dynamic_shapes=shapes, runs=runs, budget=MATMUL)


def test_slices_that_do_not_overlap_are_not_copied(e2e) -> None:
    """As in the embedding of a video's patches: nothing but the order of dimensions moves."""
    module = nn.Conv3d(3, 8, (2, 4, 4), (2, 4, 4))
    e2e.check(module, normal(2, 3, 4, 8, 8), budget=MATMUL, expect_ops={"index_select": 0, "pad": 0, "conv2d": 1})


def test_edges(e2e) -> None:
    e2e.check(nn.Conv3d(2, 3, 3, padding=1), normal(0, 2, 4, 5, 6))
    e2e.check(nn.Conv3d(1, 1, 1), normal(1, 1, 1, 1, 1), budget=MATMUL)
    x = normal(1, 2, 4, 5, 6)
    x[0, 0, 1, 2, 3], x[0, 1, 3, 0, 0] = torch.nan, torch.inf
    e2e.check(nn.Conv3d(2, 3, 2), x, budget=MATMUL)


def test_torch_s_own_operator(e2e) -> None:
    """A graph of core ATen has aten.convolution for every number of dimensions."""
    weight = normal(3, 2, 3, 2, 2)
    convolve = torch.ops.aten.convolution.default

    class Core(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(weight)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return convolve(x, self.weight, None, [1, 2, 1], [1, 0, 1], [1, 1, 2], False, [0, 0, 0], 1)

    e2e.check(Core(), normal(1, 2, 5, 6, 7), budget=MATMUL)
