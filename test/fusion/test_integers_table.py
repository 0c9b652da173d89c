# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
import torch
from support.integer_patterns import check_integers
from torch.nn import functional as F

CHAINS = {
    "one": (lambda x: F.hardswish(x), {"hardswish": 1}),
    "several": (lambda x: torch.relu(x * 0.5).clamp(0.1, 0.9), {"mul": 1, "relu": 1, "clamp": 1}),
}


@pytest.mark.parametrize("name", CHAINS)
def test_functions_of_one_element(name) -> None:
    torch.manual_seed(0)
    function, floats = CHAINS[name]
    check_integers(function, torch.randn(5, 37) * 2, pattern="integers_table", fused={"lookup": 1}, floats=floats)
