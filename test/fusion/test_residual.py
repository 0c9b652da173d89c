# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
import torch
from support.unfused import Function, check_pattern
from torch import nn

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
