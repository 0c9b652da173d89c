# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
import torch
from support.budget import EXACT, Budget
from support.many import FLOATS, Many, normal
from torch.nn import functional as F

BETWEEN = Budget(of_max=2.0**-18, why="places between elements are fp32, in eager PyTorch, too")
NEAREST = [
    lambda x: F.interpolate(x, scale_factor=2), lambda x: F.interpolate(x, (5, 17)),
    lambda x: F.interpolate(x, scale_factor=(1.7, 0.6)), lambda x: F.interpolate(x, scale_factor=(1.1, 2.07)),
    lambda x: F.pixel_shuffle(x, 2),
    lambda x: F.pixel_unshuffle(x[:, :, :6, :6], 3),
]  # fmt: skip
BILINEAR = [
    lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"),
    lambda x: F.interpolate(x, (5, 17), mode="bilinear"),
    lambda x: F.interpolate(x, (13, 1), mode="bilinear", align_corners=True),
    lambda x: F.interpolate(x, scale_factor=(1.7, 0.6), mode="bilinear", recompute_scale_factor=False),
    lambda x: F.interpolate(x, scale_factor=1.1, mode="bilinear"),  # the same size: a copy
]  # fmt: skip


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_resize(e2e, dtype) -> None:
    x = normal(2, 4, 7, 9, dtype=dtype)
    e2e.check(Many(NEAREST), x, reference="eager", budget=EXACT, all_features=True)
    e2e.check(Many(BILINEAR), x, reference="eager", budget=BETWEEN)


def test_dynamic_sizes(e2e) -> None:
    width = torch.export.Dim("width", min=2, max=64)
    functions = [lambda x: F.interpolate(x, scale_factor=2), lambda x: F.pixel_shuffle(x, 2)]
    runs = [(normal(1, 4, 3, 2),), (normal(1, 4, 3, 41),)]
    e2e.check(Many(functions), normal(1, 4, 3, 5), dynamic_shapes={"inputs": ({3: width},)}, runs=runs)
