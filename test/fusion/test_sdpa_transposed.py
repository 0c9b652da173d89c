# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import torch
from support.unfused import Function, check_pattern
from torch.nn import functional as F


def test_sdpa_transposed() -> None:
    torch.manual_seed(0)
    module = Function(lambda q, k, v: F.scaled_dot_product_attention(q, k, v).transpose(1, 2))
    inputs = [torch.randn(2, 3, rows, 8) for rows in (5, 9, 9)]
    ops = {"fused": {"sdpa": 1}, "unfused": {"sdpa": 1, "permute": 1}}
    check_pattern(module, *inputs, pattern="sdpa_transposed", rtol=5e-6, **ops)
