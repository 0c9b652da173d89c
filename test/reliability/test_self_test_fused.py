# SPDX-License-Identifier: Apache-2.0
"""Kernels that compute several calls, and products of two inputs, are tested before a model uses them, too: a lie is
planted in each. The calls around them are those of runtime/fused_calls.h."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

import pumice


class Mean(nn.Module):
    """A depthwise convolution whose channels are scaled by what becomes of their means."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.depthwise = nn.Conv2d(channels, channels, 3, padding=1, groups=channels)
        self.scale = nn.Conv2d(channels, channels, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = nn.functional.silu(self.depthwise(x))
        return y * torch.sigmoid(self.scale(y.mean((2, 3), keepdim=True)))


class Norm(nn.Module):
    """A depthwise convolution, and the layer norm of each pixel's channels."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.depthwise = nn.Conv2d(channels, channels, 7, padding=3, groups=channels)
        self.norm, self.linear = nn.LayerNorm(channels), nn.Linear(channels, 24)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(self.norm(self.depthwise(x).permute(0, 2, 3, 1)))


class Product(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return a @ b


CASES = {
    "conv2d_depthwise_mean": (Mean(16), (torch.randn(2, 16, 12, 11),)),
    "conv2d_depthwise_channels_last_norm": (Norm(32), (torch.randn(1, 32, 10, 9),)),
    "matmul": (Product(), (torch.randn(2, 40, 64), torch.randn(2, 64, 48))),
}


def found(path: Path, kernel: str, features: str) -> list:
    session = pumice.load(path, cache_dir="off", features=f"like_gpu{features}")
    return [each for each in session.device.self_test if each.kernel.partition("[")[0] == kernel]


@pytest.mark.parametrize("kernel", CASES)
def test_a_lie_is_found(kernel: str, tmp_path: Path) -> None:
    module, given = CASES[kernel]
    with torch.no_grad():
        pumice.export(module.eval(), given).save(tmp_path / "m.pumice")
    (wrong,) = found(tmp_path / "m.pumice", kernel, ",lie=portable")  # first: memory may keep what an honest run left
    assert wrong.result == "wrong" and wrong.family == "portable" and "output" in wrong.wrong
    right = found(tmp_path / "m.pumice", kernel, "")
    assert not [each for each in right if each.result != "right"]
