# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
import torch
from support.budget import EXACT, REDUCTION, ULP, Budget
from support.many import ALL, FLOATS, Many, normal

import pumice

PRODUCT = Budget(rtol=40 * ULP, why="up to 80 roundings in fp32")
LOG_SUM = Budget(
    rtol=4 * ULP, atol=12 * 2.0**-20, why="12 steps of a scan of 300: log_1_plus of an exp, 2^-21 twice each"
)


def functions(name: str) -> list:
    scan = lambda x, dim: tuple(y) if isinstance(y := getattr(x, name)(dim), tuple) else y  # noqa: E731
    return [lambda x: scan(x, 0), lambda x: scan(x, -1), lambda x: scan(x, 1), lambda x: scan(x[0, 0, 0], 0)]


@pytest.mark.parametrize("dtype", ALL, ids=str)
@pytest.mark.parametrize("name", ["cummax", "cummin"])
def test_extrema(e2e, name, dtype) -> None:
    """The last of equal elements; a NaN from where it is on, and its last place."""
    for shape in ((3, 5, 7), (2, 3, 300)):
        x = normal(*shape, dtype=dtype)
        if dtype.is_floating_point:
            x = x.round()
            x[0, :, 3::5], x[1, 1] = torch.nan, torch.tensor(-torch.inf)
        e2e.check(Many(functions(name)), x, reference="eager", all_features=dtype is torch.float16)
    e2e.check(Many(functions(name)[:3]), normal(2, 0, 3, dtype=dtype))


@pytest.mark.parametrize("dtype", [t for t in ALL if t is not torch.bool], ids=str)
def test_products(e2e, dtype) -> None:
    """Integers become i64; those of one dtype as another wrap."""
    x = normal(3, 5, 7, dtype=dtype)
    x = x.clamp(-2, 2) if not dtype.is_floating_point else 1 + x / 8
    e2e.check(Many(functions("cumprod")), x, budget=PRODUCT if dtype.is_floating_point else EXACT, all_features=True)
    e2e.check(Many([lambda x: x.cumprod(0, dtype=torch.int32)]), normal(40, 2, dtype=torch.int32))
    e2e.check(Many(functions("cumprod")[:3]), normal(2, 0, 3, dtype=dtype))


def test_a_product_beyond_32_bits_is_an_error() -> None:
    session = pumice.load(bytes(pumice.export(Many([lambda x: x.cumprod(0)]), (torch.full((40,), 2),))))
    assert session(torch.tensor([0] + [2] * 39))[0].tolist() == [0] * 40
    with pytest.raises(pumice.Error, match="32"):
        session(torch.full((40,), 2))


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_sums(e2e, dtype) -> None:
    """Integers and bool become i64; those of one dtype as another wrap."""
    for shape in ((3, 5, 7), (2, 3, 300)):
        e2e.check(Many(functions("cumsum")), normal(*shape, dtype=dtype), budget=REDUCTION, all_features=True)
    of_another = [lambda x: x.cumsum(0, dtype=torch.float32), lambda x: (x > 3).cumsum(-1) * 2]
    e2e.check(Many([*of_another, lambda x: x[0, 0].cumsum(0)]), normal(4, 9, dtype=dtype), budget=REDUCTION)
    e2e.check(Many(functions("cumsum")[:3]), normal(2, 0, 3, dtype=dtype))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_log_of_sums(e2e, dtype) -> None:
    for shape in ((3, 5, 7), (2, 3, 300)):
        x = normal(*shape, dtype=dtype) * 8
        e2e.check(Many(functions("logcumsumexp")), x, budget=LOG_SUM, all_features=True)
        x[0, :, :2], x[0, 1, 3], x[1, 1, 4], x[0, 0, -1] = -torch.inf, torch.inf, torch.nan, 80
        e2e.check(Many(functions("logcumsumexp")), x, budget=LOG_SUM)


def test_a_changing_size(e2e) -> None:
    columns = torch.export.Dim("columns", min=2, max=700)
    runs = [(normal(3, n),) for n in (2, 65, 129, 700)]
    shapes = {"inputs": ({1: columns},)}
    scans = [lambda x: tuple(x.cummax(1)), lambda x: x.logcumsumexp(1)]
    e2e.check(Many(scans), normal(3, 9), dynamic_shapes=shapes, runs=runs, budget=LOG_SUM)
    e2e.check(Many([lambda x: x.cumsum(1)]), normal(3, 9), dynamic_shapes=shapes, runs=runs, budget=REDUCTION)
