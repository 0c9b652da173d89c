# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
import torch
from support.unfused import Function, check_pattern
from torch import nn

PATTERN = "permuted_mean"


@pytest.mark.parametrize("keepdim", [True, False])
@pytest.mark.parametrize(
    ("order", "dims"),
    [
        ((0, 3, 1, 2), (2, 3)),
        ((0, 3, 1, 2), (-1, -2)),
        ((0, 3, 1, 2), (1,)),
        ((2, 0, 1, 3), (0,)),
        ((3, 2, 1, 0), (0, 1, 2)),
    ],
    ids=str,
)
def test_a_mean(order, dims, keepdim: bool) -> None:
    torch.manual_seed(0)
    x = torch.randn(2, 7, 5, 12)
    function = Function(lambda x: x.permute(order).mean(dims, keepdim=keepdim))
    view = {"view": 1} if keepdim else {}
    check_pattern(function, x, pattern=PATTERN, rtol=2e-5, fused={"mean": 1} | view, unfused={"permute": 1, "mean": 1})


def test_pooling_of_channels_last() -> None:
    torch.manual_seed(0)
    function = Function(lambda pool, x: pool(x.permute(0, 3, 1, 2)).flatten(1), nn.AdaptiveAvgPool2d(1))
    check_pattern(
        function,
        torch.randn(2, 7, 7, 24),
        pattern=PATTERN,
        rtol=2e-5,
        fused={"mean": 1, "view": 2},
        unfused={"permute": 1, "mean": 1, "view": 1},
    )


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.permute(0, 3, 1, 2).mean((0, 1)),  # rows stay where they are
        lambda x: x.permute(2, 1, 0, 3).mean(3),  # what stays is in another order
    ],
    ids=["kept in order", "another order"],
)
def test_other_orders(function) -> None:
    torch.manual_seed(0)
    x = torch.randn(2, 7, 5, 12)
    stays = function(x).shape != (7, 5)
    ops = {"permute": 1, "mean": 1}
    check_pattern(Function(function), x, pattern=PATTERN, rtol=2e-5, fused=ops if stays else {"mean": 1}, unfused=ops)


def test_a_permutation_with_another_reader_stays() -> None:
    torch.manual_seed(0)

    def function(x):
        y = x.permute(0, 3, 1, 2)
        return y.mean((2, 3)), y + 1

    ops = {"permute": 1, "mean": 1, "add": 1}
    check_pattern(Function(function), torch.randn(2, 7, 5, 12), pattern=PATTERN, rtol=2e-5, fused=ops, unfused=ops)
