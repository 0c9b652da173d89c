# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import torch
from support.unfused import check_pattern
from torch import nn


def test_zeros_around_an_image() -> None:
    torch.manual_seed(0)
    module = nn.Sequential(nn.ZeroPad2d((0, 1, 2, 3)), nn.Conv2d(3, 5, 3, stride=2, padding=1))
    ops = {"fused": {"conv2d": 1}, "unfused": {"pad": 1, "conv2d": 1}}
    check_pattern(module, torch.randn(2, 3, 8, 9), pattern="conv_pad", **ops)


def test_other_values_stay() -> None:
    torch.manual_seed(0)
    module = nn.Sequential(nn.ConstantPad2d(1, 0.5), nn.Conv2d(3, 5, 3))
    ops = {"pad": 1, "conv2d": 1}
    check_pattern(module, torch.randn(2, 3, 8, 9), pattern="conv_pad", fused=ops, unfused=ops)
