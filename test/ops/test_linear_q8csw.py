# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
import torch
from support.linear_rows import check_rows
from support.quantized import quantized


def layer(n: int, k: int, affine: bool, dtype=torch.float32) -> torch.nn.Linear:
    torch.manual_seed(n * k)
    return quantized(torch.nn.Linear(k, n).to(dtype), 8, None, affine)


@pytest.mark.parametrize("affine", [False, True], ids=["symmetric", "affine"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
@pytest.mark.parametrize(("n", "k"), [(16, 64), (37, 70), (129, 193), (1, 61), (17, 2)])
def test_per_channel(monkeypatch, n, k, dtype, affine) -> None:
    check_rows(monkeypatch, layer(n, k, affine, dtype), "linear_q8csw")


@pytest.mark.parametrize("value", [-128, 127])
def test_extreme_weights(monkeypatch, value) -> None:
    module = layer(20, 70, True)
    module.weight.qdata.fill_(value)
    module.weight.zero_point.copy_(torch.arange(20).reshape(20, 1) * 13 - 128)
    check_rows(monkeypatch, module, "linear_q8csw", ["gemv1", "tile64x64"], [1, 9])
