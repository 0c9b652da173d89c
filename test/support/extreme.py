# SPDX-License-Identifier: Apache-2.0
"""Operands of fp32 products on units that multiply fp16, which such kernels may find hard, and the bound they keep."""

from __future__ import annotations

import torch

INF = float("inf")


def extreme(rows: int, width: int, seed: int) -> torch.Tensor:
    """Rows of very different sizes; the last ones have tiny elements beside huge ones, zeros, Inf and NaN."""
    torch.manual_seed(seed)
    x = torch.randn(rows, width)
    x[1] *= 1e37
    x[2] *= 1e-36
    x[3] *= 1e-41
    x[4, 7] = 1e12
    x[5] = 0
    x[6, 5] = 1e30
    x[7] *= torch.logspace(-20, 0, width)
    return x


def check(got: torch.Tensor, x: torch.Tensor, weight: torch.Tensor) -> None:
    """x @ weight.T within linear_error and split_error (ops/linear/error_bound.h); Inf and NaN as in eager."""
    x, weight = x.double(), weight.double()
    want = x @ weight.T
    finite = want.isfinite()
    whole = torch.where(x.isfinite(), x, 0).abs(), torch.where(weight.isfinite(), weight, 0).abs()
    size = whole[0] @ whole[1].T
    reach = whole[0].amax(1)[:, None] * whole[1].sum(1) + whole[0].sum(1)[:, None] * whole[1].amax(1)
    # Drivers may take subnormal numbers for 0.
    flushed = whole[0] * (whole[0] < 2**-126) @ whole[1].T + whole[0] @ (whole[1] * (whole[1] < 2**-126)).T
    allowed = 2**-24 * want.abs() + (2**-23 * (x.shape[-1] + 26) + 2**-19) * size + 2**-49 * reach + flushed + 2**-126
    rounded = want.float()
    fits = finite & (want.abs() + allowed < torch.finfo(torch.float32).max)
    assert fits.any() and ((got.double() - want).abs() <= allowed)[fits].all()
    other = finite & ~rounded.isfinite()  # too large for fp32
    assert torch.equal(got[other], rounded[other])
    assert torch.equal(got.isnan(), want.isnan())
    assert torch.equal(got[~finite].nan_to_num(), want[~finite].float().nan_to_num())
