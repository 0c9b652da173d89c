# SPDX-License-Identifier: Apache-2.0
"""The inverse of erf, Bessel functions, numbers taken apart into mantissa and exponent, steps of integers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch._decomp import decomposition_table

from pumice.decompositions.table import takes_apart

aten = torch.ops.aten


class _Fit:
    """A polynomial through the values of `function` in fp64 at the Chebyshev nodes between two numbers."""

    def __init__(self, function: Callable[[torch.Tensor], torch.Tensor], low: float, high: float, degree: int) -> None:
        self._low, self._scale = low, 2 / (high - low)
        nodes = np.cos(np.pi * (np.arange(degree + 1) + 0.5) / (degree + 1))
        values = function(torch.from_numpy((nodes + 1) / self._scale + low)).numpy()
        chebyshev = np.polynomial.chebyshev
        self._factors = chebyshev.cheb2poly(chebyshev.chebfit(nodes, values, degree)).tolist()

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        t = (x - self._low) * self._scale - 1
        *rest, total = self._factors
        for factor in reversed(rest):
            total = total * t + factor
        return total


def _of_logarithm(w: torch.Tensor) -> torch.Tensor:
    """erfinv(x) / x of w = -log(1 - x^2), in fp64."""
    x = (-torch.expm1(-w)).sqrt()
    return torch.erfinv(x) / x


_NEAR, _FAR = 5.0, 17.0  # 1 - x^2 of an f32 is 2^-24 or more: w is below 16.7
_ERFINV_NEAR = _Fit(_of_logarithm, 0.0, _NEAR, 10)
_ERFINV_FAR = _Fit(lambda root: _of_logarithm(root * root), math.sqrt(_NEAR), math.sqrt(_FAR), 8)


@takes_apart(aten.erfinv.default)
def erfinv(self: torch.Tensor) -> torch.Tensor:
    """x times a polynomial of -log(1 - x^2), far from zero of its root."""
    x, dtype = _as_float(self)
    w = -torch.log((1 - x) * (1 + x))
    inside = x * torch.where(w < _NEAR, _ERFINV_NEAR(w), _ERFINV_FAR(w.clamp(min=_NEAR, max=_FAR).sqrt()))
    outside = torch.where(x.abs() == 1, x * torch.inf, torch.nan)
    return torch.where(x.abs() < 1, inside, outside).to(dtype)


class _Bessel:
    """e^-|x| I(|x|) of an order: a polynomial, of order 1 times |x|; from 8 on one of 8 / |x| divided by a root."""

    def __init__(self, scaled: Callable[[torch.Tensor], torch.Tensor], order: int) -> None:
        self._order = order
        self._near = _Fit(lambda x: scaled(x) / x**order, 0.0, 8.0, 16)
        self._far = _Fit(lambda y: scaled(8 / y) * (8 / y).sqrt(), 0.0, 1.0, 8)

    def __call__(self, size: torch.Tensor) -> torch.Tensor:
        near = self._near(size.clamp(max=8.0))
        large = size.clamp(min=8.0)
        return torch.where(size < 8, near * size if self._order else near, self._far(8 / large) / large.sqrt())


_ORDER_0, _ORDER_1 = _Bessel(torch.special.i0e, 0), _Bessel(torch.special.i1e, 1)


def _unscaled(x: torch.Tensor, scaled: torch.Tensor) -> torch.Tensor:
    """Times e^|x|, in halves: beyond 88.7 it is larger than any f32, the product is not."""
    half = torch.exp(x.abs() / 2)
    return half * scaled * half


@takes_apart(aten.special_i0e.default)
def i0e(self: torch.Tensor) -> torch.Tensor:
    """e^-|x| I_0(x)."""
    x, dtype = _as_float(self)
    return _ORDER_0(x.abs()).to(dtype)


@takes_apart(aten.i0.default)
def i0(self: torch.Tensor) -> torch.Tensor:
    """The modified Bessel function of order 0; as in eager PyTorch, that of infinity is NaN."""
    x, dtype = _as_float(self)
    return _unscaled(x, _ORDER_0(x.abs())).to(dtype)


@takes_apart(aten.special_i1e.default)
def i1e(self: torch.Tensor) -> torch.Tensor:
    """e^-|x| I_1(x)."""
    x, dtype = _as_float(self)
    return (_ORDER_1(x.abs()) * x.sign()).to(dtype)


@takes_apart(aten.special_i1.default)
def i1(self: torch.Tensor) -> torch.Tensor:
    """That of order 1."""
    x, dtype = _as_float(self)
    return _unscaled(x, _ORDER_1(x.abs()) * x.sign()).to(dtype)


@takes_apart(aten.frexp.Tensor)
def frexp(self: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Exact: multiplied by powers of two until it is in [1/2, 1). Below 2^-126 Vulkan lets a device see zero."""
    x, dtype = _as_float(self)
    exponent = torch.zeros_like(x)
    for power in (64, 64, 32, 16, 8, 4, 2, 1):
        small = x.abs() < 2.0**-power
        x, exponent = torch.where(small, x * 2.0**power, x), torch.where(small, exponent - power, exponent)
        large = x.abs() >= 2.0 ** (power - 1)
        x, exponent = torch.where(large, x * 2.0**-power, x), torch.where(large, exponent + power, exponent)
    ordinary = (self.abs() > 0) & self.isfinite()
    return torch.where(ordinary, x.to(dtype), self), torch.where(ordinary, exponent, 0.0).to(torch.int32)


def _as_float(x: torch.Tensor) -> tuple[torch.Tensor, torch.dtype]:
    """In f32, and the dtype that the result has."""
    return x.to(torch.float32), x.dtype if x.dtype.is_floating_point else torch.get_default_dtype()


@takes_apart(aten.linspace.default)
def linspace(start: float, end: float, steps: int, *, dtype: torch.dtype | None = None, **more: Any) -> torch.Tensor:
    """Of integers in fp64 from the nearer end, as eager PyTorch has it: torch's own takes fp32, and 1 becomes 0."""
    if dtype is None or dtype.is_floating_point or dtype.is_complex or not isinstance(steps, int) or steps < 2:
        return decomposition_table[aten.linspace.default](start, end, steps, dtype=dtype, **more)
    start, end = int(start), int(end)
    step, place = (end - start) / (steps - 1), torch.arange(steps, dtype=torch.float64)
    return torch.where(place < steps // 2, start + step * place, end - step * (steps - 1 - place)).to(dtype)
