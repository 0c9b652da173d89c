# SPDX-License-Identifier: Apache-2.0
"""Convolutional networks through ExecuTorch: everything in one partition, whatever form the edge dialect gives it."""

from __future__ import annotations

import torch
from lowered import Lowered
from torch import nn


def test_a_whole_network(tmp_path) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(3, 17, 3, 2, 1, bias=False), nn.BatchNorm2d(17), nn.Hardswish(), nn.MaxPool2d(3, 2, 1),
        nn.Conv2d(17, 17, 3, padding="same", groups=17), nn.ReLU6(), nn.GroupNorm(1, 17), nn.LeakyReLU(),
        nn.Upsample(scale_factor=2), nn.AvgPool2d(2), nn.BatchNorm2d(17), nn.PReLU(), nn.AdaptiveAvgPool2d(1),
        nn.Flatten(), nn.Linear(17, 5),
    )  # fmt: skip
    x = torch.randn(2, 3, 16, 16)
    lowered = Lowered(tmp_path, model, (x,))
    assert not lowered.report.reasons and len(lowered.report.partitions) == 1, str(lowered.report)
    assert lowered.report.operators["conv2d"] == 3
    lowered.check(lowered.load(), x)
