# SPDX-License-Identifier: Apache-2.0
"""Weights are constants on the device: whatever changes one, the next call of a compiled model sees it."""

from __future__ import annotations

import torch
from support.budget import MATMUL, MODEL, QUANTIZED
from support.compiled import Beside, mlp, operators, rows
from torch import nn

import pumice


def by_copy(model: nn.Module) -> None:
    with torch.no_grad():
        model[0].weight.mul_(2)


def by_data(model: nn.Module) -> None:
    model[2].bias.data.add_(1)


def by_numpy(model: nn.Module) -> None:
    model[2].weight.detach().numpy()[3] += 0.5


def by_new_parameter(model: nn.Module) -> None:
    model[4].weight = nn.Parameter(model[4].weight.detach() * 3)


def by_state_dict(model: nn.Module) -> None:
    model.load_state_dict({name: value + 0.25 for name, value in model.state_dict().items()})


def by_optimizer(model: nn.Module) -> None:
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    model(torch.ones(2, 96)).square().sum().backward()
    optimizer.step()
    optimizer.zero_grad()


WAYS = (by_copy, by_data, by_numpy, by_new_parameter, by_state_dict, by_optimizer)


def test_weights_that_change_in_whatever_way_are_seen() -> None:
    beside = Beside(mlp())
    x = rows(4)
    before = beside.call(x, budget=MATMUL)
    for change in WAYS:
        for model in (beside.model, beside.eager):
            change(model)
        after = beside.call(x, budget=MATMUL)
        assert (after - before).abs().max() > 1e-3, f"{change.__name__} changes nothing"
        before = after
    report = beside.compiled.report
    assert report.all_on_device and sum(len(graph.programs) for graph in report.graphs) < len(WAYS)
    assert sum(graph.builds for graph in report.graphs) == 1 + len(WAYS)


def test_versions_see_what_pytorch_counts() -> None:
    beside = Beside(mlp(), weights="versions")
    x = rows(4)
    beside.call(x, budget=MATMUL)
    for change in (by_copy, by_new_parameter, by_state_dict, by_optimizer):
        for model in (beside.model, beside.eager):
            change(model)
        beside.call(x, budget=MATMUL)


def test_a_quantized_weight_that_changes_is_seen() -> None:
    model = mlp()
    pumice.quantize(model, "int4", group_size=32)
    beside = Beside(model)
    x = rows(4)
    before = beside.call(x, budget=QUANTIZED)
    for each in (beside.model, beside.eager):
        each[0].weight.scale.mul_(2)
    after = beside.call(x, budget=QUANTIZED)
    assert (after - before).abs().max() > 1e-3 and "linear_q4gsw" in operators(beside.compiled)


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(16, 16)

    def forward(self, x):
        return self.linear(x).tanh()


class Layers(nn.Module):
    """One code for several layers, as TorchDynamo compiles it after a graph break: weights differ from call to call."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Layer() for _ in range(4))

    def forward(self, x):
        for layer in self.layers:
            torch._dynamo.graph_break()
            x = layer(x)
        return x


def test_layers_that_share_their_code_keep_their_weights() -> None:
    torch.manual_seed(2)
    beside = Beside(Layers().eval())
    for _ in range(3):
        beside.call(rows(4, 16), budget=MODEL)
    report = beside.compiled.report
    assert report.all_on_device and sum(graph.calls for graph in report.graphs) == 3 * 4
    assert max(graph.calls for graph in report.graphs) > 3  # one graph for several layers
    assert sum(graph.builds for graph in report.graphs) == 4
