# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import torch
from support.integer_patterns import check_integers


def test_views_and_permutations() -> None:
    torch.manual_seed(0)
    fused, floats = {"view": 2, "permute": 1}, {"view": 1, "permute": 1}
    moved = lambda x: x.permute(0, 2, 1).flatten(1)  # noqa: E731
    check_integers(moved, torch.randn(2, 5, 7), pattern="integers_view", fused=fused, floats=floats, same=True)


def test_another_scale_is_a_table() -> None:
    torch.manual_seed(0)
    fused = {"lookup": 1, "view": 1}
    check_integers(
        lambda x: x.flatten(1), torch.randn(2, 5, 7), pattern="integers_view", fused=fused, floats={"view": 1}
    )
