# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import torch
from support.unfused import Function, check_pattern
from torch import nn


def test_bias() -> None:
    torch.manual_seed(0)
    module = Function(lambda layer, x: layer(x) + layer.row, nn.Linear(13, 7, bias=False))
    module.layers[0].register_buffer("row", torch.randn(7))
    ops = {"fused": {"linear": 1}, "unfused": {"linear": 1, "add": 1}}
    check_pattern(module, torch.randn(5, 13), pattern="bias", **ops)
