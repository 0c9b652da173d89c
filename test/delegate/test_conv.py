# SPDX-License-Identifier: Apache-2.0
"""Convolutional networks through ExecuTorch: everything in one partition, in every form that the edge dialect has."""

from __future__ import annotations

import pytest
import torch
from support.lowered import Lowered
from support.missing import ON_CPU, OnCpu
from torch import nn


def test_images_of_a_multiple_of_16(tmp_path, capfd) -> None:
    """Exported as in ExecuTorch's test suite; also around an operator that stays on the CPU."""
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(3, 7, 3, 2, 1), nn.ReLU(), nn.MaxPool2d(2), OnCpu(), nn.Conv2d(7, 5, 3, 2, 1), nn.AdaptiveAvgPool2d(1)
    )  # fmt: skip
    height, width = torch.export.Dim("height", min=1, max=6), torch.export.Dim("width", min=1, max=6)
    lowered = Lowered(tmp_path, model, (torch.randn(1, 3, 32, 48),), dynamic_shapes=({2: 16 * height, 3: 16 * width},))
    assert [reason.target for reason in lowered.report.reasons] == [str(ON_CPU)], str(lowered.report)
    assert len(lowered.report.partitions) == 2
    method = lowered.load()
    for h, w in ((2, 3), (1, 1), (6, 4), (2, 3)):
        lowered.check(method, torch.randn(1, 3, 16 * h, 16 * w))
    with pytest.raises(RuntimeError):
        method.execute((torch.randn(1, 3, 40, 48),))
    assert "dimension 2 is 40, expected 16 * '" in capfd.readouterr().err
    lowered.check(method, torch.randn(1, 3, 48, 32))


def test_channels_last(tmp_path) -> None:
    """The input, values between partitions and the result are channels_last in memory."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 7, 3), nn.ReLU(), OnCpu(), nn.Conv2d(7, 5, 3)).to(
        memory_format=torch.channels_last
    )
    rows = torch.export.Dim("rows", min=2, max=9)
    x = torch.randn(4, 3, 8, 6).to(memory_format=torch.channels_last)
    lowered = Lowered(tmp_path, model, (x,), dynamic_shapes=({0: rows},))
    assert [reason.target for reason in lowered.report.reasons] == [str(ON_CPU)], str(lowered.report)
    method = lowered.load()
    for batch in (x, x[:2], x.half().float()):
        lowered.check(method, batch)
    assert method.execute((x,))[0].is_contiguous(memory_format=torch.channels_last)


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
