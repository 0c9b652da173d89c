# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
import torch
from support.linear_rows import check_rows
from support.quantized import quantized


def layer(n: int, k: int, group: int, affine: bool, dtype=torch.float32) -> torch.nn.Linear:
    torch.manual_seed(n * k)
    return quantized(torch.nn.Linear(k, n).to(dtype), 8, group, affine)


@pytest.mark.parametrize("affine", [False, True], ids=["symmetric", "affine"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
@pytest.mark.parametrize(("n", "k", "group"), [(37, 96, 32), (20, 24, 12), (40, 256, 128)])
def test_per_group(monkeypatch, n, k, group, dtype, affine) -> None:
    check_rows(monkeypatch, layer(n, k, group, affine, dtype), "linear_q8gsw")


@pytest.mark.parametrize("value", [-128, 127])
def test_extreme_weights(monkeypatch, value) -> None:
    module = layer(20, 96, 32, True)
    module.weight.qdata.fill_(value)
    module.weight.zero_point.copy_(torch.arange(60).reshape(20, 3) * 4 - 128)
    check_rows(monkeypatch, module, "linear_q8gsw", ["gemv1", "tile64x64"], [1, 9])
