# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
import torch
from support.budget import REDUCTION
from support.many import FLOATS, Many, normal
from torch.nn import functional as F

MAXIMA = [
    lambda x: F.max_pool2d(x, 2), lambda x: F.max_pool2d(x, (3, 2), (2, 1), (1, 0)), lambda x: F.max_pool2d(x, 3, 2, 1),
    lambda x: F.max_pool2d(x, 2, 3, ceil_mode=True),
    lambda x: F.max_pool2d(x, (6, 5), 3, (3, 2), 3, ceil_mode=True), lambda x: F.max_pool2d(x, 2, 1, 1, (2, 3)),
    lambda x: F.max_pool1d(x.flatten(2)[0], 3, 2, 1),
]  # fmt: skip
MEANS = [
    lambda x: F.avg_pool2d(x, 2), lambda x: F.avg_pool2d(x, (3, 2), (2, 1), (1, 0)),
    lambda x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True), lambda x: F.avg_pool2d(x, 3, 2, 1, True, False),
    lambda x: F.avg_pool2d(x, 1280, ceil_mode=True),
    lambda x: F.avg_pool2d(x, 3, divisor_override=5), lambda x: F.avg_pool1d(x.flatten(2), 3, 2, 1),
    lambda x: F.adaptive_avg_pool2d(x, 1), lambda x: F.adaptive_avg_pool2d(x, (3, 5)),
    lambda x: F.adaptive_avg_pool2d(x, (12, None)), lambda x: F.adaptive_avg_pool1d(x[0].flatten(1), 4),
]  # fmt: skip

WITH_PLACES = [
    lambda x: F.max_pool2d(x, (3, 2), (2, 1), (1, 0), return_indices=True),
    lambda x: F.max_pool2d(x[0], 2, 3, ceil_mode=True, return_indices=True),
    lambda x: F.max_pool3d(x, (2, 3, 2), (1, 2, 2), (1, 0, 1), (2, 1, 1), return_indices=True),
    lambda x: F.max_pool1d(x[0, 0], 3, 2, 1, return_indices=True),
]  # fmt: skip
VOLUMES = [
    lambda x: F.max_pool3d(x, 2), lambda x: F.max_pool3d(x, (2, 3, 1), (1, 2, 2), (1, 1, 0), (2, 1, 3), True),
    lambda x: F.avg_pool3d(x, 2), lambda x: F.avg_pool3d(x[None], (2, 3, 1), (1, 2, 2), (1, 1, 0), True),
    lambda x: F.avg_pool3d(x, (2, 3, 2), 1, 1, False, False), lambda x: F.avg_pool3d(x, 2, divisor_override=3),
    lambda x: F.adaptive_avg_pool3d(x, (2, 3, None)), lambda x: F.adaptive_avg_pool3d(x[None], 1),
]  # fmt: skip


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_pool(e2e, dtype) -> None:
    x = normal(2, 3, 9, 7, dtype=dtype)
    e2e.check(Many(MAXIMA), x, reference="eager", all_features=True)
    more = VOLUMES if dtype is torch.float32 else VOLUMES[:2]  # eager has no means of fp16
    e2e.check(Many([*MEANS, *more]), x, budget=REDUCTION, all_features=True)


@pytest.mark.parametrize("dtype", [*FLOATS, torch.int64, torch.int32, torch.int8, torch.uint8], ids=str)
def test_places(e2e, dtype) -> None:
    """The first of equal ones, and the last NaN."""
    x = normal(2, 3, 9, 7, dtype=dtype)
    x = x // 16 if not dtype.is_floating_point else x.round()
    if dtype.is_floating_point:
        x[0, 0, 1:4, 1:5], x[0, 1], x[1, 2, 3, 3], x[1, 2, 4, 2:4] = -torch.inf, -torch.inf, torch.inf, torch.nan
    module = Many([lambda x, f=f: tuple(f(x)) for f in WITH_PLACES])
    e2e.check(module, x, reference="eager", all_features=dtype is torch.float32)


def test_special_values(e2e) -> None:
    x = normal(1, 2, 6, 6)
    x[0, 0, 1, 1], x[0, 0, 4, 4], x[0, 1, 0, 0] = float("nan"), float("inf"), -float("inf")
    e2e.check(Many([*MAXIMA[:3], *MEANS[:2]]), x, reference="eager", budget=REDUCTION)


def test_more(e2e) -> None:
    height = torch.export.Dim("height", min=4, max=64)
    functions = [lambda x: F.max_pool2d(x, 2), lambda x: F.adaptive_avg_pool2d(x, (2, 3))]
    e2e.check(
        Many(functions),
        normal(2, 3, 6, 7),
        dynamic_shapes={"inputs": ({2: height},)},
        runs=[(normal(2, 3, 4, 7),), (normal(2, 3, 33, 7),)],
        budget=REDUCTION,
    )
