# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
import torch
from support.budget import NORM, Budget
from support.many import FLOATS, normal
from torch import nn


class RmsNorm(nn.Module):
    """As models write it out."""

    def __init__(self, width: int, dtype: torch.dtype = torch.float32, by_mul: bool = False) -> None:
        super().__init__()
        self.weight, self.by_mul = nn.Parameter(normal(width, dtype=dtype, seed=9)), by_mul

    def forward(self, x):
        y = x.float()
        mean = (y * y if self.by_mul else y.pow(2)).mean(-1, keepdim=True)
        y = y * torch.rsqrt(mean + 1e-5)
        return self.weight * y.to(x.dtype)


def randomised(module: nn.Module, dtype: torch.dtype) -> nn.Module:
    for seed, parameter in enumerate(module.parameters()):
        parameter.data = normal(*parameter.shape, seed=seed + 5)
    return module.to(dtype)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("width", [1, 3, 6, 8, 63, 384])
def test_norm(e2e, dtype, width) -> None:
    x = normal(2, 5, width, dtype=dtype) * 3 + 1
    for module in (nn.LayerNorm(width), nn.LayerNorm(width, elementwise_affine=False), nn.LayerNorm(width, bias=False)):
        e2e.check(randomised(module, dtype), x, budget=NORM, expect_ops={"layer_norm": 1})
    for module in (nn.RMSNorm(width, eps=1e-5), nn.RMSNorm(width, eps=1e-3, elementwise_affine=False)):
        e2e.check(randomised(module, dtype), x, budget=NORM, expect_ops={"rms_norm": 1})


def test_several_dimensions(e2e) -> None:
    e2e.check(randomised(nn.LayerNorm((3, 5)), torch.float32), normal(4, 3, 5), budget=NORM, all_features=True)
    e2e.check(randomised(nn.RMSNorm((4, 3, 5)), torch.float32), normal(4, 3, 5), budget=NORM, all_features=True)


def test_written_out(e2e) -> None:
    for dtype in FLOATS:
        for by_mul in (False, True):
            module = RmsNorm(24, dtype, by_mul)
            e2e.check(
                module, normal(2, 5, 24, dtype=dtype), budget=NORM, expect_ops={"rms_norm": 1, "mul": 0, "mean": 0}
            )


def test_default_eps(e2e) -> None:
    """That of fp32, also for fp16."""
    for dtype in FLOATS:
        budget = Budget(rtol=2**-10 if dtype is torch.float16 else NORM.rtol, atol=1e-6, why="eager rounds once more")
        e2e.check(nn.RMSNorm(12).to(dtype), normal(3, 12, dtype=dtype) * 0.1, budget=budget, reference="eager")


def test_offset_and_special_values(e2e) -> None:
    """The mean is subtracted before squaring: an offset costs what rounding it costs (eager PyTorch: 7e-6)."""
    x = normal(6, 100) + 100
    e2e.check(nn.LayerNorm(100), x, budget=Budget(atol=2e-5, why="the mean, 100, is rounded to 2^-17"))
    x = normal(6, 100)
    x[0, 3], x[1, 5], x[2], x[3] = float("nan"), float("inf"), 0, 5
    e2e.check(nn.LayerNorm(100), x, budget=NORM, reference="eager")
    e2e.check(nn.RMSNorm(100), x, budget=NORM, reference="eager")


def test_changing_sizes(e2e) -> None:
    rows = torch.export.Dim("rows", min=2, max=64)
    for width in (12, 10):
        runs = [(normal(n, width),) for n in (2, 9, 64)]
        e2e.check(nn.LayerNorm(width), normal(5, width), dynamic_shapes=({0: rows},), runs=runs, budget=NORM)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_group_norm(e2e, dtype) -> None:
    for module, shape in [
        (nn.GroupNorm(2, 6), (3, 6, 5, 3)),
        (nn.GroupNorm(3, 12), (2, 12, 4, 4)),
        (nn.GroupNorm(1, 5, affine=False), (2, 5, 7)),
        (nn.GroupNorm(5, 5), (2, 5, 1, 2)),
        (nn.InstanceNorm2d(3, affine=True), (2, 3, 4, 5)),
        (nn.InstanceNorm1d(4), (1, 4, 9)),
    ]:
        x = normal(*shape, dtype=dtype) * 3 + 1
        e2e.check(randomised(module, dtype), x, budget=NORM, expect_ops={"group_norm": 1})
