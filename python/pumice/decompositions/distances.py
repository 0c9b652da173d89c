# SPDX-License-Identifier: Apache-2.0
"""Distances between rows, and sums of products of two or three tensors."""

from __future__ import annotations

from typing import Any

import torch

from pumice.decompositions.orders import places
from pumice.decompositions.table import takes_apart

aten = torch.ops.aten

_MANY = 25  # rows from which on PyTorch takes Euclidean distances by a matrix product
_ALWAYS, _NEVER = 1, 2  # compute_mode


def _norm(difference: torch.Tensor, p: float) -> torch.Tensor:
    """Of the last dimension."""
    if difference.shape[-1] == 0:
        return difference.new_zeros(difference.shape[:-1])
    if p == 0:
        return difference.abs().ceil().clamp(max=1).sum(-1)  # how many are not 0; NaN stays NaN
    if p == 2:
        return (difference * difference).sum(-1).sqrt()
    size = difference.abs()
    if p == 1:
        return size.sum(-1)
    return size.amax(-1) if p == float("inf") else size.pow(p).sum(-1).pow(1 / p)


@takes_apart(aten._cdist_forward.default)
def cdist(x1: torch.Tensor, x2: torch.Tensor, p: float, compute_mode: int | None) -> torch.Tensor:
    """Where PyTorch uses a matrix product, which is less exact for close rows, this does, too: there are too many
    differences to keep."""
    many = x1.shape[-2] > _MANY or x2.shape[-2] > _MANY
    if p == 2 and compute_mode != _NEVER and (many or compute_mode == _ALWAYS):
        squares = x1.square().sum(-1, keepdim=True) + x2.square().sum(-1).unsqueeze(-2)
        return (squares - 2 * (x1 @ x2.transpose(-1, -2))).clamp_min(0).sqrt()
    return _norm(x1.unsqueeze(-2) - x2.unsqueeze(-3), p)


@takes_apart(aten._pdist_forward.default)
def pdist(self: torch.Tensor, p: float = 2) -> torch.Tensor:
    """Of each pair of rows, the smaller index first."""
    count = self.shape[0]
    pairs, at = torch.arange(count * (count - 1) // 2), torch.arange(count)
    before = at * (2 * count - 1 - at) // 2  # of the pairs of smaller first rows
    rows = places(before, pairs, True) - 1
    columns = pairs - before[rows] + rows + 1
    return _norm(self[rows] - self[columns], p)


@takes_apart(aten.bilinear.default)
def bilinear(
    input1: torch.Tensor, input2: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None
) -> torch.Tensor:
    """One product with all matrices beside each other; the second factors the sums that are left. In f32."""
    made, first, second = weight.shape
    beside = weight.permute(1, 0, 2).reshape(first, made * second).to(torch.float32)
    by_first = (input1.to(torch.float32) @ beside).unflatten(-1, (made, second))
    out = (by_first * input2.to(torch.float32).unsqueeze(-2)).sum(-1)
    return (out if bias is None else out + bias).to(weight.dtype)


@takes_apart(aten.addbmm.default)
def addbmm(self: torch.Tensor, batch1: torch.Tensor, batch2: torch.Tensor, *, beta: float = 1, alpha: float = 1) -> Any:
    """beta * self + alpha * the sum of the products; with beta 0 what self holds does not matter. In f32, which has
    not all integers: they are refused, as their products are."""
    if not self.is_floating_point():
        return NotImplemented
    product = alpha * torch.bmm(batch1.to(torch.float32), batch2.to(torch.float32)).sum(0)
    return (product if beta == 0 else beta * self + product).to(self.dtype)
