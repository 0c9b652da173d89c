# SPDX-License-Identifier: Apache-2.0
"""What is made of other operators, against the eager operator that it stands for."""

from __future__ import annotations

import pytest
import torch
from support.budget import ARITHMETIC, MATMUL, NORM, POW, REDUCTION
from support.many import ALL, FLOATS, Many, normal
from torch.nn import functional as F


@pytest.mark.parametrize("dtype", [t for t in ALL if t is not torch.bool], ids=str)
def test_searchsorted(e2e, dtype) -> None:
    """Equal elements on both sides; rows of their own; NaN is after all."""
    rows = normal(3, 7, dtype=dtype).sort(-1).values
    rows[:, 3] = rows[:, 2]
    x = torch.cat([rows[:, 1:5], normal(3, 6, dtype=dtype, seed=2)], 1)
    if dtype.is_floating_point:
        x[0, 0], x[1, 2], x[2, 5] = torch.nan, torch.inf, -torch.inf
    functions = [
        lambda b, x: torch.searchsorted(b, x), lambda b, x: torch.searchsorted(b, x, right=True),
        lambda b, x: torch.bucketize(x, b[0]), lambda b, x: torch.bucketize(x, b[0], right=True, out_int32=True),
        lambda b, x: torch.searchsorted(b[1], x[0]), lambda b, x: torch.searchsorted(b[0, :1], x, side="right"),
        lambda b, x: torch.searchsorted(b[0, :0], x), lambda b, x: torch.searchsorted(b[2], 3),
        lambda b, x: torch.searchsorted(b.flip(-1), x, sorter=torch.arange(6, -1, -1).expand(3, 7)),
    ]  # fmt: skip
    e2e.check(Many(functions), rows, x, reference="eager", all_features=dtype is torch.float32)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.int64, torch.uint8], ids=str)
def test_mode_and_nanmedian(e2e, dtype) -> None:
    x = (normal(4, 5, 9, dtype=dtype) / (8 if not dtype.is_floating_point else 0.5)).round().to(dtype)
    if dtype.is_floating_point:
        x[0, 0, :4], x[1, 1], x[2, :, 3] = torch.nan, torch.nan, torch.nan
    # Which of equal elements is meant is open: the element at the place has to be the value.
    at = lambda x, found, dim: (found[0], x.gather(dim, found[1]))  # noqa: E731
    functions = [
        lambda x: at(x, x.nanmedian(1, keepdim=True), 1),
        lambda x: x[0].nanmedian(),
        lambda x: x[1, 2].median(),
    ]
    if dtype.is_floating_point:
        functions.append(lambda x: x[1, 1].nanmedian())
    numbers = [lambda x, d=d: at(x, x.mode(d, keepdim=True), d) for d in (0, 1, -1)]
    e2e.check(Many(functions), x, reference="eager")
    e2e.check(Many(numbers), x.nan_to_num(1) if dtype.is_floating_point else x, reference="eager", all_features=True)


def test_places(e2e) -> None:
    x = normal(3, 4, 5).round()
    functions = [
        lambda x: torch.nonzero_static(x, size=9), lambda x: torch.nonzero_static(x > 9, size=3, fill_value=7),
        lambda x: torch.nonzero_static(x[0] > 0, size=40),
        lambda x: x.put(torch.tensor([[1, -1], [7, 0]]), x[0, :2, :2]),
        lambda x: x.put(torch.tensor([1, 1, 7]), x[0, 0, :3], accumulate=True),
        lambda x: torch.diagonal_scatter(x, x[:, 0, :4], -1, 2, 1),
        lambda x: x.as_strided_scatter(x[0], (4, 5), (1, 4), 3),
        lambda x: x.signbit(), lambda x: (x.int() - 1).signbit(), lambda x: (-0.0 * x.abs()).signbit(),
        lambda x: torch.index_add(x[0, 0, 0], 0, torch.tensor([0]), x[0, 1, 1], alpha=3),
    ]  # fmt: skip
    e2e.check(Many(functions), x, reference="eager", budget=ARITHMETIC)
    x[0, 0, 0], x[1, 1, 1], x[2, 2, 2] = torch.nan, -torch.inf, -torch.nan
    e2e.check(Many([lambda x: x.angle(), lambda x: x.signbit()]), x, reference="eager")


def test_histograms(e2e) -> None:
    x = normal(7, 300)
    x[0, 0], x[1, 1], x[2, :3] = torch.inf, -torch.inf, torch.tensor([-1.0, 1.0, 0.5])
    functions = [
        lambda x: x.histc(7, -1, 1), lambda x: x[3:].histc(13), lambda x: x[3, :1].histc(4), lambda x: x[:0].histc(3),
    ]  # fmt: skip
    e2e.check(Many(functions), x, reference="eager", all_features=True)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_distances(e2e, dtype) -> None:
    x, y = normal(2, 5, 3, dtype=dtype), normal(2, 7, 3, dtype=dtype, seed=2)
    norms = (0.0, 1.0, 2.0, 3.0, float("inf"))
    if dtype is torch.float32:
        e2e.check(Many([lambda x, y, p=p: torch.cdist(x, y, p) for p in norms]), x, y, budget=POW)
        e2e.check(Many([lambda x, y, p=p: F.pdist(x[0], p) for p in norms]), x, y, budget=POW)
        e2e.check(Many([torch.cdist]), normal(40, 3), normal(30, 3, seed=2), budget=MATMUL)
    functions = [
        lambda x, y, w: F.bilinear(x, y[:, :5], w, w[:, 0, 0]), lambda x, y, w: F.bilinear(x[0, 0], y[0, 0], w),
        lambda x, y, w: torch.addbmm(x[0, :, :1], x, y.mT, beta=0.5, alpha=2),
        lambda x, y, w: torch.addbmm(x[0, :, :1] / 0, x, y.mT, beta=0), lambda x, y, w: F.linear(x[0, 0], y[0]),
    ]  # fmt: skip
    e2e.check(Many(functions), x, y, normal(4, 3, 3, dtype=dtype, seed=3), budget=MATMUL)


def test_addbmm_of_integers_is_refused(e2e) -> None:
    x, y = normal(2, 5, 3, dtype=torch.int64), normal(2, 3, 7, dtype=torch.int64)
    e2e.refuses(Many([lambda x, y: torch.addbmm(x[0, :, :1], x, y)]), x, y, match="addbmm")


@pytest.mark.parametrize("antialias", [False, True])
def test_bytes_between_elements_are_refused(e2e, antialias) -> None:
    """PyTorch has weights of 16 bits there, so that its result differs from the exact one by 1 and more."""
    x = normal(1, 3, 9, 11, dtype=torch.uint8)
    module = Many([lambda x: F.interpolate(x, (4, 20), mode="bilinear", antialias=antialias)])
    e2e.refuses(module, x, match=r"resize x\.float\(\), then")


def test_images(e2e) -> None:
    x = normal(2, 3, 9, 11)
    resized = lambda x, size, mode, a: F.interpolate(x, size, mode=mode, antialias=True, align_corners=a)  # noqa: E731
    functions = [
        lambda x, m=m, a=a, s=s: resized(x, s, m, a)
        for m in ("bilinear", "bicubic") for a in (False, True) for s in ((4, 5), (20, 3))
    ]  # fmt: skip
    e2e.check(Many(functions), x, budget=MATMUL)
    x = x.round()
    x[0, 0, 2, 3], x[1, 1, 3, 3], x[1, 2] = torch.nan, torch.inf, -torch.inf
    functions = [
        lambda x: F.adaptive_max_pool2d(x, (4, 5), return_indices=True),
        lambda x: F.adaptive_max_pool2d(x[0], (9, 1), True),
        lambda x: F.adaptive_max_pool1d(x[:, 0], 3, return_indices=True),
        lambda x: F.adaptive_max_pool3d(x[None], (2, 3, 4), return_indices=True),
    ]  # fmt: skip
    e2e.check(Many(functions), x, reference="eager")


def test_volumes_at_a_grid(e2e) -> None:
    volume, grid = normal(2, 3, 4, 5, 6), normal(2, 3, 2, 4, 3) * 0.9
    functions = [
        lambda v, g, m=m, p=p, a=a: F.grid_sample(v, g, m, p, a)
        for m in ("bilinear", "nearest") for p in ("zeros", "border", "reflection") for a in (False, True)
    ]  # fmt: skip
    e2e.check(Many(functions), volume, grid, reference="eager", budget=MATMUL)
    # What is at place 0 must not leak into places outside. The budget of a sum cannot have an infinite term.
    volume[:, :, 0, 0, 0] = torch.inf
    outside = grid / 0.9 + 2.5
    zeros = [lambda v, g, m=m: F.grid_sample(v, g, m, "zeros", False) for m in ("bilinear", "nearest")]
    e2e.check(Many(zeros), volume, outside, reference="eager", budget=MATMUL)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_embedding_bag(e2e, mode) -> None:
    weight, indices = normal(9, 5), torch.tensor([1, 8, 3, 3, 0, 2, 7])
    offsets = torch.tensor([0, 2, 2, 6])
    functions = [
        lambda i, o: F.embedding_bag(i, weight, o, mode=mode),
        lambda i, o: F.embedding_bag(i[:6].reshape(2, 3), weight, mode=mode),
        lambda i, o: F.embedding_bag(i, weight, torch.cat([o, torch.tensor([7])]), mode=mode, include_last_offset=True),
        lambda i, o: F.embedding_bag(i, weight, o, mode=mode, include_last_offset=True),  # elements after the last bag
    ]  # fmt: skip
    if mode == "sum":
        functions.append(lambda i, o: F.embedding_bag(i, weight, o, mode=mode, per_sample_weights=weight[:7, 0]))
    padded = lambda i, o: F.embedding_bag(i, weight, o, mode=mode, padding_idx=3)  # noqa: E731
    if mode != "max":
        functions.append(padded)
    else:
        e2e.refuses(Many([padded]), indices, offsets, match="padding_idx")
    e2e.check(Many(functions), indices, offsets, budget=REDUCTION)


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_convolution_with_a_computed_weight(e2e, dims) -> None:
    x, weight = normal(2, 4, *(7, 6, 5)[:dims]), normal(4, 3, *(3, 2, 2)[:dims])
    convolve, spread = getattr(F, f"conv{dims}d"), getattr(F, f"conv_transpose{dims}d")
    functions = [
        lambda x, w: convolve(x, w.transpose(0, 1), w[0, :, 0].flatten()[:3], 2, 1),
        lambda x, w: convolve(x[0], w[:, :2] * 2, None, 1, "same", 2, 2), lambda x, w: spread(x, w, None, 2, 1, 1),
        lambda x, w: spread(x, w * x.mean(), w[0, :, 0].flatten()[:2].repeat(3), 1, 0, 0, 2),
    ]  # fmt: skip
    e2e.check(Many(functions), x, weight, budget=MATMUL)


def test_a_bias_is_added_before_the_sum_is_rounded(e2e) -> None:
    """Of f16, where the budget has room for one rounding only."""
    x, weight, bias = normal(2, 8, 6, 7).half(), normal(8, 4, 3, 3).half(), 30 * normal(8).half()
    functions = [
        lambda x, w, b: F.conv_transpose2d(x, w, b[:4], 2, 1), lambda x, w, b: F.conv_transpose2d(x, w, b, 1, 0, 0, 2),
        lambda x, w, b: F.conv2d(x, w.transpose(0, 1), b[4:], 2, 1), lambda x, w, b: F.conv2d(x, w, b, groups=2),
    ]  # fmt: skip
    e2e.check(Many(functions), x, weight, bias, reference="f64", budget=MATMUL)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_statistics_of_norms(e2e, dtype) -> None:
    x = normal(2, 6, 5, dtype=dtype) + 1
    functions = [
        lambda x: torch.native_layer_norm(x, [6, 5], None, None, 1e-5)[1:],
        lambda x: tuple(torch.native_layer_norm(x, [5], None, None, 1e-5)),
        lambda x: tuple(torch.native_group_norm(x, None, None, 2, 6, 5, 3, 1e-5)),
    ]  # fmt: skip
    e2e.check(Many(functions), x, budget=NORM)
