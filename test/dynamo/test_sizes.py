# SPDX-License-Identifier: Apache-2.0
"""A program that torch.export captured for dynamic sizes runs for those only that its guards and ranges allow."""

from __future__ import annotations

import torch
from torch import nn
from torch.export import Dim

from pumice.dynamo.sizes import Sizes


class Branches(nn.Module):
    def forward(self, x, y):
        x = x + y[: x.shape[0]] if x.shape[0] % 4 == 0 else x * 2
        return x[1:] if x.shape[1] < 9 else x


def test_sizes_hold_where_the_branches_are_those_of_the_example() -> None:
    shapes = ({0: Dim.AUTO, 1: Dim.AUTO}, {0: Dim.AUTO})
    program = torch.export.export(Branches(), (torch.ones(8, 5), torch.ones(16, 1)), dynamic_shapes=shapes)
    sizes = Sizes(program)
    assert sizes.dynamic

    def hold(*shapes: tuple[int, ...]) -> bool:
        return sizes.hold([torch.empty(shape) for shape in shapes])

    assert hold((8, 5), (16, 1)) and hold((12, 8), (12, 1)) and hold((4, 7), (32, 1))
    assert not hold((6, 5), (16, 1)) and not hold((8, 9), (16, 1)) and not hold((8, 5), (16, 2))
    assert not hold((8, 5, 1), (16, 1)) and not hold((8, 5))
    assert not hold((12, 5), (8, 1))  # y[:12] of 8 rows has 8


def test_sizes_that_are_fixed() -> None:
    sizes = Sizes(torch.export.export(nn.Linear(4, 2), (torch.ones(3, 4),)))
    assert not sizes.dynamic and sizes.hold([torch.empty(3, 4)]) and not sizes.hold([torch.empty(5, 4)])
