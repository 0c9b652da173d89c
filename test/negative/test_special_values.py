# SPDX-License-Identifier: Apache-2.0
"""R03: NaN, infinities, -0, denormal numbers and the largest finite ones, through operators of every kind at once.

What moves data keeps every bit (but the payload of a NaN). What computes has NaN and infinities where PyTorch has them;
Vulkan lets a device flush denormal numbers, so these may count as 0. Quantized linears: values=special of the kernel
tool's table; every fp16 number: test_unary.py, test_quantize.py, test_storage.py."""

from __future__ import annotations

import pytest
import torch
from support.many import Many, normal
from torch.nn import functional as F

import pumice

INF, NAN = float("inf"), float("nan")


def special(dtype: torch.dtype) -> torch.Tensor:
    info = torch.finfo(dtype)
    denormal = info.smallest_normal / 4
    return torch.tensor(
        [NAN, INF, -INF, 0.0, -0.0, denormal, -denormal, info.max, -info.max, info.smallest_normal, 1.0, -2.5],
        dtype=dtype,
    )


class Moves(torch.nn.Module):
    def forward(self, x: torch.Tensor, index: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return (
            x.t(),
            torch.cat([x, x[:, 1:5]], 1),
            F.pad(x, (1, 2), value=1.5),
            x.reshape(-1)[1:],
            x.index_select(1, index),
            torch.gather(x, 1, index[None].expand(2, -1)),
            torch.where(index[None] > 3, x, -x),
            x.flip(1),
            x.expand(3, 2, x.shape[1]),
            torch.abs(x),
        )


class Computes(torch.nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return (
            x + y, x - y, x * y, x / y, torch.maximum(x, y), torch.minimum(x, y), x.clamp(-1, 2), F.relu(x),
            torch.sqrt(x), torch.exp(x), torch.sigmoid(x), torch.tanh(x), F.silu(x), torch.reciprocal(x),
            torch.round(x), x.sum(1), x.mean(1), x.amax(1), x.amin(1), torch.cumsum(x, 1), torch.softmax(x, 1),
            x[:, :, None] @ y[:, None, :2],
        )  # fmt: skip


class Compares(torch.nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return x < y, x == y, x >= y, x != y, x.isnan(), x.isinf(), x.argmax(1), x.to(torch.bool)


def is_not_subnormal(x: torch.Tensor) -> torch.Tensor:
    return x.isnan() | (x.abs() >= torch.finfo(x.dtype).smallest_normal) | (x == 0)


def pairs(dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """Every pair of the n special values, as two tensors [n, n]."""
    x = special(dtype)
    return x.repeat_interleave(len(x)).reshape(len(x), -1).contiguous(), x.repeat(len(x), 1)


def run(module: torch.nn.Module, *inputs: torch.Tensor) -> list[tuple[torch.Tensor, torch.Tensor]]:
    with torch.no_grad():
        want = module(*inputs)
    return list(zip(pumice.load(bytes(pumice.export(module.eval(), inputs)))(*inputs), want, strict=True))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
def test_moves_keep_bits(dtype) -> None:
    x = torch.stack([special(dtype), special(dtype).flip(0)])
    words = torch.int32 if dtype is torch.float32 else torch.int16
    for i, (got, want) in enumerate(run(Moves(), x, torch.tensor([7, 0, 11, 3, 5, 5, 1, 2, 4, 6, 8, 9]))):
        got, want = got.contiguous(), want.contiguous()
        assert torch.equal(got.isnan(), want.isnan()), i
        live = ~want.isnan()
        assert torch.equal(got.view(words)[live], want.view(words)[live]), i


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
def test_arithmetic(dtype) -> None:
    x, y = pairs(dtype)
    tiny, half = torch.finfo(dtype).smallest_normal, dtype is torch.float16
    # A denormal number that is flushed gives NaN times infinity. Denormal numbers of fp16 are normal in fp32, in which
    # kernels compute.
    normal = torch.ones_like(x, dtype=torch.bool) if half else is_not_subnormal(x) & is_not_subnormal(y)
    for i, (got, want) in enumerate(run(Computes(), x, y)):
        if want.shape[:2] == x.shape:
            got, want = got[normal], want[normal]
        agree(i, got, want, rtol=2e-3 if half else 1e-4, atol=16 * tiny)


def agree(i: int, got: torch.Tensor, want: torch.Tensor, rtol: float = 1e-4, atol: float = 1e-5) -> None:
    assert torch.equal(got.isnan(), want.isnan()), f"{i}: NaN at other places"
    assert torch.equal(got.isinf(), want.isinf()) and torch.equal(got[got.isinf()], want[want.isinf()]), i
    live = want.isfinite()
    torch.testing.assert_close(got[live], want[live], rtol=rtol, atol=atol)


def test_where_forms_of_torch_have_other_nans() -> None:
    """Losses, distances and a gradient that pumice/decompositions takes apart itself. Labels end at -1."""
    rows = torch.tensor([[NAN, 1, 2.5], [INF, 1, 2], [-INF, 0.5, 0], [1, NAN, INF], [1, 0.25, 0.5], [0.5, 3, 1]])
    classes, weight = torch.tensor([0, 1, 1, 0, 2, 1]), torch.tensor([2.0, INF, 0.5])
    labels = torch.tensor([[1, 2, -1], [2, -1, 0], [-1, 0, 1], [0, 1, 2], [1, -1, -1], [0, -1, 1]])
    none = "none"
    functions = [
        lambda x, c, w, t: torch.cdist(x, x[2:], 0), lambda x, c, w, t: F.pdist(x, 0),
        lambda x, c, w, t: F.multi_margin_loss(x, c, reduction=none),
        lambda x, c, w, t: F.multi_margin_loss(x, c, 2, 0.75, reduction=none),
        lambda x, c, w, t: F.multi_margin_loss(x, c, 2, 0.75, w, reduction=none),
        lambda x, c, w, t: F.multi_margin_loss(x[4:], c[4:]), lambda x, c, w, t: F.multi_margin_loss(x[0], c[1]),
        lambda x, c, w, t: F.multilabel_margin_loss(x, t, reduction=none),
        lambda x, c, w, t: F.multilabel_margin_loss(x[4:5], t[4:5]),
        lambda x, c, w, t: F.multilabel_margin_loss(x[0], t[0]),
        lambda x, c, w, t: torch.ops.aten._softmax_backward_data(x.isfinite() + 0.5, x, 1, x.dtype),
    ]  # fmt: skip
    for i, (got, want) in enumerate(run(Many(functions), rows, classes, weight, labels)):
        agree(i, got, want)


def test_volumes_at_any_place() -> None:
    """Places that are no numbers, and elements that are not: those outside are not read."""
    volume, grid = normal(1, 2, 3, 4, 5), normal(1, 4, 5, 6, 3) * 0.9
    volume[0, 0, 0, 0, 0], volume[0, 1, 2, 3, 4], volume[0, 0, 1, 2, 3] = INF, NAN, -INF
    grid.view(-1)[::17], grid.view(-1)[5::19], grid.view(-1)[7::23] = NAN, INF, -INF
    functions = [
        lambda v, g, m=m, p=p, a=a: F.grid_sample(v, g, m, p, a)
        for p, a in (("zeros", False), ("border", True), ("reflection", False)) for m in ("bilinear", "nearest")
    ]  # fmt: skip
    for i, (got, want) in enumerate(run(Many(functions), volume, grid)):
        agree(i, got, want)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
def test_comparisons(dtype) -> None:
    x, y = pairs(dtype)
    live = is_not_subnormal(x) & is_not_subnormal(y)
    for got, want in run(Compares(), x, y):
        assert torch.equal(
            got[live] if got.shape == live.shape else got, want[live] if got.shape == live.shape else want
        )
