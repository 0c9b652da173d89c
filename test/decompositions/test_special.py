# SPDX-License-Identifier: Apache-2.0
"""The inverse of erf, Bessel functions, mantissas and exponents, histograms of any edges."""

from __future__ import annotations

import pytest
import torch
from support.budget import ARITHMETIC, ULP, Budget
from support.many import FLOATS, Many, normal

import pumice

ERFINV = Budget(rtol=16 * ULP, why="a polynomial of 10 roundings; log is 2^-20 or 3 ulp, and a tenth of that is left")
SCALED = Budget(rtol=20 * ULP, why="a polynomial of fit 4 ulp, a division of 2.5 and a root of 4 ulp")
BY_EXP = Budget(rtol=224 * ULP, why="SCALED; exp of x / 2, twice, is 2 * (3 + x) ulp, x <= 92")
EDGES = Budget(rtol=ARITHMETIC.rtol, of_max=ULP, why="ARITHMETIC; low + i * step is rounded twice, in eager once")
ERROR = {
    torch.erfinv: ERFINV, torch.special.i0e: SCALED, torch.special.i1e: SCALED, torch.i0: BY_EXP,
    torch.special.i1: BY_EXP,
}  # fmt: skip
SPECIAL = [0.0, -0.0, 1.0, -1.0, 1.5, 8.0, -8.0, 7.99, 88.0, 93.0, 3e4, torch.inf, -torch.inf, torch.nan, 1e-6]


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("function", ERROR, ids=lambda function: function.__name__)
def test_functions(e2e, function, dtype) -> None:
    dense = torch.linspace(-1, 1, 4001) if function is torch.erfinv else torch.linspace(-88, 88, 4001)
    near_one = 1 - torch.logspace(-7.2, 0, 301)
    runs = [torch.tensor(SPECIAL), dense, near_one, normal(0), normal(1)]
    size = torch.export.Dim("n", min=0, max=10000)
    e2e.check(Many([function]), normal(37, dtype=dtype), runs=[x.to(dtype) for x in runs], budget=ERROR[function],
              dynamic_shapes={"inputs": ({0: size},)}, all_features=True)  # fmt: skip


def test_where_eager_overflows_too_early(e2e) -> None:
    """e^90 is larger than any f32, I(90) is not: eager PyTorch has inf there in f32, and not in fp64."""
    x = torch.linspace(89, 91, 100)
    session = pumice.load(bytes(pumice.export(Many([torch.i0, torch.special.i1]), (x,))))
    for got, function in zip(session(x), (torch.i0, torch.special.i1), strict=True):
        want = function(x.double())
        assert ((got.double() - want).abs() <= BY_EXP.allowed(want, torch.float32)).all()


def test_of_integers(e2e) -> None:
    e2e.check(Many([torch.i0, torch.special.i1e]), torch.arange(-5, 9), budget=BY_EXP)
    e2e.check(Many([torch.erfinv]), torch.tensor([True, False]), budget=ERFINV)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_frexp(e2e, dtype) -> None:
    """Every exponent, powers of two and their neighbours; exact."""
    tiny, huge = (-126, 128) if dtype is torch.float32 else (-14, 16)
    powers = 2.0 ** torch.arange(tiny, huge, dtype=torch.float64)
    x = torch.cat([powers, powers * (1 + 2.0**-10), -powers * (2 - 2.0**-9), torch.tensor(SPECIAL).double()]).to(dtype)
    x = x[~x.isinf() & ((x == 0) | (x.abs() >= 2.0**tiny) | x.isnan())]
    functions = [
        lambda x, take=take: tuple(torch.frexp(take(x))) for take in (lambda x: x, lambda x: x[5], lambda x: x[:0])
    ]
    e2e.check(Many(functions), x, reference="eager", all_features=True)


def histogram(*args, **more):
    return tuple(torch.histogram(*args, **more))


def test_histograms(e2e) -> None:
    x = normal(7, 300)
    x[0, 0], x[1, 1], x[2, :3], x[3, 3] = torch.inf, -torch.inf, torch.tensor([-1.0, 1.0, 0.5]), torch.nan
    edges = torch.tensor([-2.0, -1.0, -0.25, 0.5, 0.5, 1.0])
    functions = [
        lambda x, w: histogram(x, 7, range=(-1, 1)), lambda x, w: histogram(x[4:], 13),
        lambda x, w: histogram(x, edges), lambda x, w: histogram(x, 5, range=(-2, 2), weight=w),
        lambda x, w: histogram(x[5], edges[:4], weight=w[5], density=True),
        lambda x, w: histogram(x[4], 9, density=True), lambda x, w: histogram(x[4, :1], 4),
        lambda x, w: histogram(x[:0], 3), lambda x, w: histogram(x[6, 6], 2),
    ]  # fmt: skip
    weight = (normal(7, 300, seed=2) * 4).round()  # whole numbers: their sums are exact in any order
    e2e.check(Many(functions), x, weight, reference="eager", budget=EDGES)


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.int8], ids=str)
def test_steps_of_integers(e2e, dtype) -> None:
    """Where a step in fp32 would end just below a whole number."""
    steps = [(4, -3, 50), (-3, 4, 50), (0, 10, 7), (2.7, 50.2, 13), (5, 5, 3), (3, 9, 1), (3, 9, 0)]
    functions = [lambda x, each=each: x + torch.linspace(*each, dtype=dtype).sum() for each in steps]
    functions += [lambda x, each=each: x + torch.linspace(*each, dtype=dtype)[None] for each in steps[:-1]]
    e2e.check(Many(functions), torch.ones(3, 1, dtype=dtype))
