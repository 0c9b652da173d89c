# SPDX-License-Identifier: Apache-2.0
"""Blocks that look at windows, written out: each is one island, and agrees with eager PyTorch."""

from __future__ import annotations

import pytest
import torch
from support.budget import MODEL
from torch import nn
from torch.nn import functional as F


class Attention(nn.Module):
    """Four heads of four, over [.., tokens, 16]."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(16, 48)
        self.bias = nn.Parameter(torch.randn(49, 4))
        at = torch.stack(torch.meshgrid(torch.arange(4), torch.arange(4), indexing="ij")).flatten(1)
        rows, columns = at[:, :, None] - at[:, None] + 3
        self.register_buffer("places", rows * 7 + columns)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = (part.transpose(-2, -3) for part in self.qkv(x).unflatten(-1, (3, 4, 4)).movedim(-3, 0))
        scores = q @ k.transpose(-1, -2) / 2 + self.bias[self.places].permute(2, 0, 1)
        return (scores.softmax(-1) @ v).transpose(-2, -3).flatten(-2)


class MaxViT(nn.Module):
    """A block of MaxViT: a convolution, attention inside of windows, then between the same places of all windows."""

    def __init__(self) -> None:
        super().__init__()
        self.convolve = nn.Sequential(
            nn.Conv2d(16, 32, 1), nn.BatchNorm2d(32), nn.GELU(), nn.Conv2d(32, 32, 3, 1, 1, groups=32),
            nn.Conv2d(32, 16, 1),
        )  # fmt: skip
        self.inside, self.between = Attention(), Attention()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.convolve(x)
        batch, channels, height, width = x.shape
        apart = x.reshape(batch, channels, height // 4, 4, width // 4, 4)
        windows = self.inside(apart.permute(0, 2, 4, 3, 5, 1).flatten(3, 4))
        x = x + windows.unflatten(3, (4, 4)).permute(0, 5, 1, 3, 2, 4).reshape(x.shape)
        apart = x.reshape(batch, channels, 4, height // 4, 4, width // 4)
        grid = self.between(apart.permute(0, 3, 5, 2, 4, 1).flatten(3, 4))
        return x + grid.unflatten(3, (4, 4)).permute(0, 5, 3, 1, 4, 2).reshape(x.shape)


class Halo(nn.Module):
    """Attention of blocks to what lies around them, as in HaloNet; windows added up again."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.kv = nn.Conv2d(8, 16, 1), nn.Conv2d(8, 32, 1)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        batch, _, height, width = x.shape
        blocks = (
            self.q(x).reshape(batch, 16, height // 4, 4, width // 4, 4).permute(0, 2, 4, 3, 5, 1).reshape(-1, 16, 16)
        )
        around = (
            F.pad(self.kv(x), [1] * 4).unfold(2, 6, 4).unfold(3, 6, 4).permute(0, 2, 3, 4, 5, 1).reshape(-1, 36, 32)
        )
        k, v = around.split(16, -1)
        found = torch.softmax(blocks @ k.transpose(-1, -2) / 4, -1) @ v
        return found, F.fold(F.unfold(x, 3, padding=1), (height, width), 3, padding=1)


class Nested(nn.Module):
    """Attention inside of blocks, over five dimensions, as in NesT and Twins; heads stand before the blocks."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(8, 24), nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, channels, height, width = x.shape
        blocks = x.reshape(batch, channels, height // 4, 4, width // 4, 4).permute(0, 2, 4, 3, 5, 1)
        blocks = blocks.reshape(batch, -1, 16, channels)
        q, k, v = self.qkv(blocks).reshape(*blocks.shape[:3], 3, 2, channels // 2).permute(3, 0, 4, 1, 2, 5).unbind(0)
        found = F.scaled_dot_product_attention(q, k, v).permute(0, 2, 3, 4, 1).reshape(blocks.shape)
        apart = self.out(found).reshape(batch, height // 4, width // 4, 4, 4, channels)
        return x + apart.permute(0, 5, 1, 3, 2, 4).reshape(x.shape)


class Lambda(nn.Module):
    """A lambda layer: what lies around a place is summed up by a convolution of three dimensions."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Conv2d(8, 4 * 4 + 4 + 8, 1, bias=False)
        self.norm_q, self.norm_v = nn.BatchNorm2d(16), nn.BatchNorm2d(8)
        self.around = nn.Conv3d(1, 4, (5, 5, 1), padding=(2, 2, 0))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, _, height, width = x.shape
        q, k, v = torch.split(self.qkv(x), [16, 4, 8], 1)
        q = self.norm_q(q).reshape(batch, 4, 4, height * width).transpose(-1, -2)
        v = self.norm_v(v).reshape(batch, 8, height * width).transpose(-1, -2)
        content = F.softmax(k.reshape(batch, 4, height * width), -1) @ v
        found = q @ content[:, None]
        places = self.around(v.reshape(batch, 1, height, width, 8)).reshape(batch, 1, 4, height * width, 8)
        found = found + (q[..., None, :] @ places.transpose(2, 3)).squeeze(-2)
        return found.transpose(-1, -2).reshape(batch, 32, height, width)


class AntiAliased(nn.Module):
    """A convolution, then every second place of what a blur leaves, the image continued by its reflection."""

    def __init__(self) -> None:
        super().__init__()
        self.convolve = nn.Conv2d(8, 16, 3, 1, 1)
        line = torch.tensor([1.0, 2.0, 1.0]) / 4
        self.register_buffer("blur", (line[:, None] * line).expand(16, 1, 3, 3).contiguous())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        padded = F.pad(torch.relu(self.convolve(x)), [1] * 4, "reflect")
        return F.conv2d(padded, self.blur, stride=2, groups=16)


@pytest.mark.parametrize(("make", "channels"), [(MaxViT, 16), (Halo, 8), (Nested, 8), (Lambda, 8), (AntiAliased, 8)])
def test_blocks(e2e, make, channels) -> None:
    e2e.check(make(), torch.randn(2, channels, 16, 16), budget=MODEL)
