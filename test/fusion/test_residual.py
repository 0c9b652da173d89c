# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
import torch
from support.unfused import CHAIN, Function, check_pattern
from torch import nn
from torchao.quantization import Int8DynamicActivationInt8WeightConfig, quantize_

import pumice


@pytest.mark.parametrize("scheme", [None, "int4", "8da4w"])
def test_residual(scheme) -> None:
    torch.manual_seed(0)
    module = Function(lambda layer, x, y: y + layer(x), nn.Linear(64, 12))
    if scheme:
        pumice.quantize(module, scheme)
    op = {None: "linear", "int4": "linear_q4gsw", "8da4w": "linear_dq8ca_q4gsw"}[scheme]
    ops = {"fused": {op: 1}, "unfused": {op: 1, "add": 1}}
    check_pattern(module, torch.randn(5, 64), torch.randn(5, 12), pattern="residual", rtol=2e-5, **ops)


def test_a_sum_that_broadcasts_stays() -> None:
    torch.manual_seed(0)
    module = Function(lambda layer, x, y: layer(x) + y, nn.Linear(8, 4))
    ops = {"linear": 1, "add": 1}
    check_pattern(module, torch.randn(3, 8), torch.randn(1, 4), pattern="residual", fused=ops, unfused=ops)


def test_layer_scale() -> None:
    torch.manual_seed(0)
    module = Function(lambda layer, scale, x, y: y + scale.weight[0] * layer(x), nn.Linear(64, 12), nn.Linear(12, 1))
    ops = {"fused": {"linear": 1}, "unfused": {"linear": 1, "mul": 1, "add": 1}}
    check_pattern(module, torch.randn(5, 64), torch.randn(5, 12), pattern="residual", rtol=2e-5, **ops)


@pytest.mark.parametrize("scheme", ["int4", "int8", "8da4w", "8da8w", "torchao's Int8"])
def test_a_layer_scale_of_integers_stays(scheme) -> None:
    """Torchao's Int8 layers end with products by their scales, which are none of the model's."""
    torch.manual_seed(0)
    module = Function(lambda layer, scale, x, y: y + scale.weight[0] * layer(x), nn.Linear(64, 12), nn.Linear(12, 1))
    if scheme == "torchao's Int8":
        quantize_(module.layers[0], Int8DynamicActivationInt8WeightConfig())
    else:
        pumice.quantize(module.layers[0], scheme)
    program = pumice.export(module, (torch.randn(5, 64), torch.randn(5, 12)), options={"without_fusion": (CHAIN,)})
    assert program.report.operators.keys() >= {"mul", "add"} and "linear" not in program.report.operators


def test_a_layer_scale_with_a_computed_bias_stays() -> None:
    torch.manual_seed(0)

    def function(layer, x, y):
        return y + layer.bias * nn.functional.linear(x, layer.weight, y[0])

    inputs = torch.randn(5, 64), torch.randn(5, 12)
    program = pumice.export(Function(function, nn.Linear(64, 12)), inputs, options={"without_fusion": (CHAIN,)})
    assert program.report.operators["mul"] == 1 and program.report.operators["add"] >= 1
