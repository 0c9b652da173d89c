# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import torch
from support.integer_patterns import check_integers


def test_cat() -> None:
    torch.manual_seed(0)
    inputs = torch.randn(3, 5), torch.randn(3, 2)
    fused = {"lookup": 2, "cat": 1}
    check_integers(lambda a, b: torch.cat([a, b], 1), *inputs, pattern="integers_cat", fused=fused, floats={"cat": 1})
