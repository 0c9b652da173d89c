# SPDX-License-Identifier: Apache-2.0
"""The smallest model worth exporting: ``pumice export examples/mlp.py:build --quantize int4 -o mlp.pumice``."""

import torch
from torch import nn


class Mlp(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(256, 512), nn.Linear(512, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(nn.functional.gelu(self.up(x)))


def build():
    """(module, args, kwargs, dynamic_shapes)"""
    torch.manual_seed(0)
    rows = torch.export.Dim("rows", min=1, max=1024)
    return Mlp().eval(), (torch.randn(2, 256),), {}, {"x": {0: rows}}
