# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
import torch
from support.unfused import check_pattern
from torch import nn


def norm(channels: int) -> nn.Module:
    layer = nn.BatchNorm2d(channels)
    for values, low in ((layer.weight, -1), (layer.bias, -1), (layer.running_mean, -2), (layer.running_var, 0.1)):
        nn.init.uniform_(values, low, 2)
    return layer


@pytest.mark.parametrize("conv", [nn.Conv2d(4, 6, 3, bias=False), nn.ConvTranspose2d(4, 6, 3, groups=2)], ids=str)
def test_batch_norm(conv) -> None:
    torch.manual_seed(0)
    for parameter in conv.parameters():
        nn.init.uniform_(parameter, -1, 1)
    ops = {"fused": {"conv2d": 1}, "unfused": {"conv2d": 2, "view": 2}}
    check_pattern(nn.Sequential(conv, norm(6)).eval(), torch.randn(2, 4, 9, 7), pattern="batch_norm", **ops)
