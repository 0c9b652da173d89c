# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import torch
from support.integer_patterns import check_integers
from torch.nn import functional as F


def test_nearest() -> None:
    torch.manual_seed(0)
    fused, floats = {"lookup": 1, "upsample2d": 1}, {"upsample2d": 1}
    check_integers(
        lambda x: F.interpolate(x, scale_factor=2),
        torch.randn(2, 3, 4, 5),
        pattern="integers_resize",
        fused=fused,
        floats=floats,
    )


def test_shuffled_channels() -> None:
    torch.manual_seed(0)
    moved = {"view": 2, "permute": 1}
    fused = {**moved, "lookup": 1}
    check_integers(
        lambda x: F.pixel_shuffle(x, 2), torch.randn(2, 8, 4, 5), pattern="integers_resize", fused=fused, floats=moved
    )


def test_bilinear() -> None:
    """A result near a tie may differ by one."""
    torch.manual_seed(0)
    resize = lambda x: F.interpolate(x, (7, 11), mode="bilinear")  # noqa: E731
    fused, floats = {"q8ta_upsample2d": 1}, {"upsample2d": 1}
    check_integers(resize, torch.randn(2, 3, 4, 5), pattern="integers_resize", fused=fused, floats=floats, steps=1)
