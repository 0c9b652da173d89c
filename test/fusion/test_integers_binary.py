# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
import torch
from support.integer_patterns import check_integers

FUNCTIONS = {
    "add": (lambda a, b: a + b, "q8ta_add", {"add": 1}),
    "mul": (lambda a, b: a * b, "q8ta_mul", {"mul": 1}),
    "relu": (lambda a, b: torch.relu(a * b), "q8ta_mul", {"mul": 1, "relu": 1}),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_arithmetic(name) -> None:
    torch.manual_seed(0)
    function, op, floats = FUNCTIONS[name]
    check_integers(
        function, torch.randn(5, 37), torch.randn(5, 37), pattern="integers_binary", fused={op: 1}, floats=floats
    )
