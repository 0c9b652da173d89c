# SPDX-License-Identifier: Apache-2.0
"""Squeeze and excite as image networks write it."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional as F


class Gate(nn.Module):
    """The factors of pooled channels [N, C, 1, 1], or [N, C] by linear layers."""

    def __init__(
        self,
        channels: int,
        hidden: int,
        act: Callable[[torch.Tensor], torch.Tensor] = F.silu,
        gate: Callable[[torch.Tensor], torch.Tensor] = torch.sigmoid,
        bias: bool = True,
        linear: bool = False,
    ) -> None:
        super().__init__()
        layer = nn.Linear if linear else lambda a, b, bias: nn.Conv2d(a, b, 1, bias=bias)
        self.squeeze, self.excite = layer(channels, hidden, bias=bias), layer(hidden, channels, bias=bias)
        self.act, self.gate = act, gate

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.gate(self.excite(self.act(self.squeeze(x))))


class SqueezeExcite(nn.Module):
    """An image times the factors of its channels; `options`: those of Gate."""

    def __init__(self, channels: int, hidden: int, **options) -> None:
        super().__init__()
        self.linear = options.get("linear", False)
        self.factors = Gate(channels, hidden, **options)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        pooled = F.adaptive_avg_pool2d(x, 1)
        return x * (self.factors(pooled.flatten(1))[..., None, None] if self.linear else self.factors(pooled))
