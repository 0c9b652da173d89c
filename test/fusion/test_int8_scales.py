# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
import torch
from support.unfused import check_pattern
from torch import nn
from torchao.quantization import Int8DynamicActivationInt8WeightConfig, Int8WeightOnlyConfig, quantize_

import pumice


def layer(config: object) -> nn.Module:
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(32, 12, bias=False)).eval()
    quantize_(module, config)
    return module


def test_int8_weights() -> None:
    """Without the pattern the integers are converted when the file is written, and multiplied as floats."""
    module, x = layer(Int8WeightOnlyConfig()), torch.randn(5, 32)
    ops = {"fused": {"linear_q8csw": 1}, "unfused": {"matmul": 1, "mul": 1}}
    check_pattern(module, x, pattern="int8_scales", **ops)


def test_products_of_integers_have_no_other_way() -> None:
    module, x = layer(Int8DynamicActivationInt8WeightConfig()), torch.randn(5, 32)
    assert pumice.export(module, (x,)).report.operators == {"linear_dq8ca_q8csw": 1}
    with pytest.raises(pumice.UnsupportedError, match="a product of integers by itself"):
        pumice.export(module, (x,), options={"without_fusion": ("int8_scales",)})
