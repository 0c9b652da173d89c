# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
import torch
from support.budget import REDUCTION
from support.many import FLOATS, Many, normal
from support.one_call import OneCall
from torch.nn import functional as F

import pumice

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


# Rows of x and of the results are whole vec4 groups: an invocation makes four neighbours of what their windows share.
ROWS = [
    lambda x: F.max_pool2d(x, 3, 2, 1), lambda x: F.max_pool2d(x, (2, 4), (1, 4)), lambda x: F.max_pool2d(x, 2),
    lambda x: F.max_pool2d(x, (3, 5), 1, (0, 2), ceil_mode=True), lambda x: F.max_pool2d(x, (4, 5), 1, 2),
    lambda x: F.max_pool2d(x, 3, 1, (0, 1), (3, 1)), lambda x: F.max_pool2d(x, 3, 1, 1),
    lambda x: F.max_pool2d(x, 9, 1, 4), lambda x: F.max_pool1d(x[0], 3, 1, 1),
    lambda x: F.max_pool3d(x, (2, 3, 3), (1, 2, 2), (1, 1, 1), (2, 1, 1)),
]  # fmt: skip
ROWS_OF_MEANS = [
    lambda x: F.avg_pool2d(x, 3, 2, 1), lambda x: F.avg_pool2d(x, 3, 1, 1, False, False),
    lambda x: F.avg_pool2d(x, (2, 5), 1, (1, 2), True), lambda x: F.avg_pool2d(x, 2, divisor_override=3),
]  # fmt: skip
# Windows of many elements, few of them: the lanes of a workgroup share one.
LARGE = [
    lambda x: F.avg_pool2d(x, 7), lambda x: F.avg_pool2d(x, (9, 6), (3, 2), (4, 3)),
    lambda x: F.avg_pool2d(x, (9, 6), (4, 3), (4, 3), True, False), lambda x: F.avg_pool2d(x, (14, 13)),
    lambda x: F.avg_pool2d(x, 8, divisor_override=7), lambda x: F.adaptive_avg_pool2d(x, (2, 2)),
    lambda x: F.adaptive_avg_pool2d(x, (1, 2)), lambda x: F.avg_pool1d(x.flatten(2), 40, 7, 3),
]  # fmt: skip


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_rows_of_words(e2e, dtype) -> None:
    x = normal(2, 3, 9, 16, dtype=dtype)
    more = [] if dtype is torch.float16 else [lambda x: F.avg_pool3d(x, 3, 1, 1)]  # eager has no means of fp16
    e2e.check(Many(ROWS), x, reference="eager", all_features=True)
    e2e.check(Many([*ROWS_OF_MEANS, *more]), x, budget=REDUCTION, all_features=True)
    x[0, 0, 1:6, 2:9], x[0, 1], x[1, 2, 3, 3], x[1, 2, 4, 2:4] = -torch.inf, -torch.inf, torch.inf, torch.nan
    e2e.check(Many(ROWS), x, reference="eager")


@pytest.mark.parametrize("dtype", [*FLOATS, torch.int64, torch.int32, torch.int8, torch.uint8], ids=str)
def test_places_in_rows_of_words(e2e, dtype) -> None:
    x = normal(2, 3, 9, 16, dtype=dtype)
    x = x // 16 if not dtype.is_floating_point else x.round()
    if dtype.is_floating_point:
        x[0, 0, 1:4, 1:5], x[0, 1], x[1, 2, 3, 3], x[1, 2, 4, 2:4] = -torch.inf, -torch.inf, torch.inf, torch.nan
    places = [
        lambda x: F.max_pool2d(x, 3, 2, 1, return_indices=True), lambda x: F.max_pool2d(x[0], 2, return_indices=True),
        lambda x: F.max_pool3d(x, (2, 3, 3), (1, 2, 2), (1, 1, 1), (2, 1, 1), return_indices=True),
    ]  # fmt: skip
    e2e.check(Many([lambda x, f=f: tuple(f(x)) for f in places]), x, reference="eager")


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_large_windows(e2e, dtype) -> None:
    for shape in [(2, 3, 14, 13), (3, 5, 17, 16)]:
        e2e.check(Many(LARGE), normal(*shape, dtype=dtype), budget=REDUCTION, all_features=True)
    if dtype is torch.float32:
        volumes = [lambda x: F.avg_pool3d(x, (3, 4, 5), 2, (1, 2, 2)), lambda x: F.adaptive_avg_pool3d(x, (1, 2, 2))]
        e2e.check(Many(volumes), normal(2, 5, 9, 7), budget=REDUCTION, all_features=True)


def mean_of_bytes(x: torch.Tensor, op: str, args: list, dims: list[int], features: str) -> torch.Tensor:
    low, high = (-128, 127) if x.dtype is torch.int8 else (0, 255)
    calls = OneCall()
    args = [calls.input(x.dtype, list(x.shape)), *args, 0.037, 11, 0.0291, 5, low, high]
    calls.call(op, args, x.dtype, dims)
    return torch.from_numpy(pumice.load(calls.bytes(), features=features).run_flat([x.numpy()])[0])


@pytest.mark.parametrize("fill", ["any", "lowest", "highest"])
@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8], ids=str)
@pytest.mark.parametrize("shape", [(1, 37, 7, 7), (3, 5, 6, 9), (2, 2, 35, 34), (1, 1, 1, 33), (5, 3, 1, 1)], ids=str)
def test_means_of_bytes_by_lanes(dtype, shape, fill) -> None:
    """Sums are exact: one invocation, on a CPU, and lanes that share a window, as on a GPU, give the same bytes."""
    info = torch.iinfo(dtype)
    x = torch.randint(info.min, info.max + 1, shape, generator=torch.Generator().manual_seed(3)).to(dtype)
    if fill != "any":
        x.fill_(info.min if fill == "lowest" else info.max)
    window = [[*shape[2:]], [1, 1], [1, 0, 1, 2], [1, 1], False]
    cases = [
        ("q8ta_adaptive_avg_pool", [[1, 1]], [1, 1]), ("q8ta_adaptive_avg_pool", [[1, 2]], [1, 2]),
        ("q8ta_avg_pool", [*window, False, None], [3, 3]), ("q8ta_avg_pool", [*window, True, None], [3, 3]),
        ("q8ta_avg_pool", [*window, False, 9], [3, 3]),
    ]  # fmt: skip
    for op, args, size in cases:
        dims = [*shape[:2], *size]
        alone = mean_of_bytes(x, op, args, dims, "")
        torch.testing.assert_close(mean_of_bytes(x, op, args, dims, "like_gpu"), alone, rtol=0, atol=0)
        if args == [[1, 1]]:
            mean = x.double().mean((2, 3), keepdim=True)
            want = ((mean - 11) * 0.037 / 0.0291 + 5).clamp(info.min, info.max)
            assert (alone.double() - want).abs().max() <= 0.5 + 1e-3


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8], ids=str)
def test_means_of_bytes_in_rows_of_words(dtype) -> None:
    """By rows, and by windows of x with a column more that none of them reaches."""
    info = torch.iinfo(dtype)
    x = torch.randint(info.min, info.max + 1, (2, 3, 9, 17), generator=torch.Generator().manual_seed(3)).to(dtype)
    for kernel, stride, pads, width in [(3, 2, [1, 1, 1, 0], 8), (2, 2, [0] * 4, 8), (4, 4, [2, 0, 1, 0], 4)]:
        args = [[kernel, kernel], [stride, stride], pads, [1, 1], False]
        dims = [2, 3, (9 + pads[0] + pads[2] - kernel) // stride + 1, width]
        for count_padding in (False, True):
            by_row, others = (
                mean_of_bytes(part.contiguous(), "q8ta_avg_pool", [*args, count_padding, None], dims, features)
                for part, features in [(x[..., :16], ""), (x, "like_gpu")]
            )
            torch.testing.assert_close(by_row, others, rtol=0, atol=0)
