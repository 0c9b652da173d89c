# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
import torch
from support.unfused import Function, check_pattern


@pytest.mark.parametrize("shape", [(5, 7), (7,)], ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
def test_add_relu(dtype, shape) -> None:
    torch.manual_seed(0)
    module = Function(lambda a, b: torch.relu(a + b))
    ops = {"fused": {"add_relu": 1}, "unfused": {"add": 1, "relu": 1}}
    inputs = torch.randn(5, 7).to(dtype), torch.randn(shape).to(dtype)
    check_pattern(module, *inputs, pattern="add_relu", rtol=0, **ops)


def test_the_sum_of_a_linear_layer_is_its_residual() -> None:
    torch.manual_seed(0)
    module = Function(lambda layer, x, y: torch.relu(layer(x) + y), torch.nn.Linear(8, 4))
    ops = {"linear": 1, "relu": 1}
    check_pattern(module, torch.randn(3, 8), torch.randn(3, 4), pattern="add_relu", fused=ops, unfused=ops)
