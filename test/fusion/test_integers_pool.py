# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
import torch
from support.integer_patterns import check_integers
from torch.nn import functional as F

MEANS = {
    "avg_pool": lambda x: F.avg_pool2d(x, 3, 2, 1),
    "adaptive_avg_pool": lambda x: F.adaptive_avg_pool2d(x, (2, 3)),
}


def test_largest_ones() -> None:
    torch.manual_seed(0)
    fused, floats = {"lookup": 1, "max_pool": 1}, {"max_pool": 1}
    check_integers(
        lambda x: F.max_pool2d(x, 3, 2, 1), torch.randn(2, 3, 6, 5), pattern="integers_pool", fused=fused, floats=floats
    )


@pytest.mark.parametrize("name", MEANS)
def test_means(name) -> None:
    """The sums of floats are rounded, those of integers are not: a result near a tie may differ by one."""
    torch.manual_seed(0)
    x = torch.randn(2, 3, 6, 5)
    check_integers(MEANS[name], x, pattern="integers_pool", fused={f"q8ta_{name}": 1}, floats={name: 1}, steps=1)


def test_mean_over_images() -> None:
    torch.manual_seed(0)
    fused, floats = {"q8ta_adaptive_avg_pool": 1, "view": 1}, {"mean": 1}
    check_integers(
        lambda x: x.mean((2, 3)), torch.randn(2, 3, 6, 5), pattern="integers_pool", fused=fused, floats=floats, steps=1
    )
