# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
import torch
from support.unfused import Function, check_pattern
from torch import nn
from torch.nn import functional as F

ACTIVATIONS = {
    "relu": F.relu,
    "gelu": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "silu": F.silu,
    "hardswish": F.hardswish,
    "hardsigmoid": F.hardsigmoid,
    "clamp": F.relu6,
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_of_a_linear_layer(name) -> None:
    torch.manual_seed(0)
    act = ACTIVATIONS[name]
    module = Function(lambda layer, x: act(layer(x)), nn.Linear(13, 7))
    ops = {"fused": {"linear": 1}, "unfused": {"linear": 1, name: 1}}
    check_pattern(module, torch.randn(5, 13) * 4, pattern="activation", **ops)


def test_of_a_convolution() -> None:
    torch.manual_seed(0)
    module = nn.Sequential(nn.Conv2d(3, 6, 3), nn.ReLU6())
    ops = {"fused": {"conv2d": 1}, "unfused": {"conv2d": 1, "clamp": 1}}
    check_pattern(module, torch.randn(2, 3, 9, 7) * 9, pattern="activation", **ops)


def test_a_result_that_is_read_twice_stays() -> None:
    torch.manual_seed(0)

    def both(layer: nn.Module, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        product = layer(x)
        return product, F.relu(product)

    ops = {"linear": 1, "relu": 1}
    check_pattern(Function(both, nn.Linear(8, 4)), torch.randn(3, 8), pattern="activation", fused=ops, unfused=ops)
