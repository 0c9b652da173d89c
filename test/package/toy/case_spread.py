# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
import torch
from support.budget import ARITHMETIC


@torch.library.custom_op("pumice_toy::spread", mutates_args=())
def spread(x: torch.Tensor, scale: float) -> torch.Tensor:
    return scale * (x.amax(-1) - x.amin(-1))


@spread.register_fake
def _(x: torch.Tensor, scale: float) -> torch.Tensor:
    return x.new_empty(x.shape[:-1])


class Spread(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return spread(-x, 0.5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
def test_spread(e2e, dtype) -> None:
    x = torch.randn(3, 5, 37, generator=torch.Generator().manual_seed(0)).to(dtype)
    e2e.check(Spread(), x, budget=ARITHMETIC, expect_ops=["spread"], all_features=True)
