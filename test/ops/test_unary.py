# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
import torch
from support.budget import ACTIVATION, ARITHMETIC, EXACT, EXP, LOG, ROOT, Budget

from pumice.ops.unary import _FUNCTIONS, _ROUNDING

SINE = Budget(
    atol=1.6e-7, why="sine and cosine of math/math.glslh: the argument is reduced in integers, for every size of it"
)
ERF = Budget(atol=1.6e-7, why="erf of math/math.glslh")
FUNCTIONS = {
    torch.abs: EXACT, torch.neg: EXACT, torch.relu: EXACT, torch.sign: EXACT, torch.square: ARITHMETIC,
    torch.floor: EXACT, torch.ceil: EXACT, torch.round: EXACT, torch.trunc: EXACT,
    torch.sqrt: ROOT, torch.rsqrt: ROOT, torch.reciprocal: ARITHMETIC, torch.exp: EXP, torch.expm1: EXP,
    torch.log: LOG, torch.log1p: LOG, torch.log2: LOG, torch.log10: LOG,
    torch.sin: SINE, torch.cos: SINE, torch.erf: ERF, torch.tanh: ACTIVATION, torch.sigmoid: ACTIVATION,
    torch.nn.functional.silu: ACTIVATION, torch.nn.functional.gelu: ACTIVATION,
    torch.nn.functional.hardswish: ARITHMETIC, torch.nn.functional.hardsigmoid: ARITHMETIC,
}  # fmt: skip
INTEGER = [torch.abs, torch.neg, torch.relu, torch.sign, torch.floor, torch.ceil, torch.trunc]
SPECIAL = [0.0, -0.0, 0.5, 1.5, -2.5, 1e-6, -7.25, 30.0, -30.0, 9000.5, float("inf"), -float("inf"), float("nan")]


class Apply(torch.nn.Module):
    def __init__(self, function, **kwargs):
        super().__init__()
        self.function, self.kwargs = function, kwargs

    def forward(self, x):
        return self.function(x, **self.kwargs)


def values(dtype: torch.dtype = torch.float32, *shape: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(1)
    return (torch.randn(shape or (7, 33), generator=generator) * 3).to(dtype)


def name(function) -> str:
    return function.__name__


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
@pytest.mark.parametrize("function", FUNCTIONS, ids=name)
def test_float(e2e, function, dtype) -> None:
    special = torch.tensor(SPECIAL, dtype=dtype)
    if function is torch.nn.functional.gelu:
        special = special[special != float("inf")]  # eager PyTorch says NaN there, the limit is inf
    e2e.check(Apply(function), values(dtype), runs=[values(dtype)], budget=FUNCTIONS[function], all_features=True)
    e2e.check(Apply(function), special, budget=FUNCTIONS[function])


def test_gelu_by_tanh(e2e) -> None:
    module = Apply(torch.nn.functional.gelu, approximate="tanh")
    e2e.check(module, values(), budget=ACTIVATION, expect_ops=["gelu_tanh"])


@pytest.mark.parametrize("function", INTEGER, ids=name)
@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.int8, torch.uint8], ids=str)
def test_integer(e2e, function, dtype) -> None:
    e2e.check(Apply(function), (values() * 20).to(torch.int32).to(dtype))


def test_an_integer_becomes_float_first(e2e) -> None:
    e2e.check(Apply(torch.exp), torch.arange(-5, 6), budget=EXP, expect_ops=["cast", "exp"])


def test_near_zero_no_digits_are_lost(e2e) -> None:
    near = torch.tensor([1e-30, -1e-7, 3e-5, -4e-3, 0.1, -0.2, 0.49, -0.49, 0.51, -0.51])
    budget = Budget(rtol=5e-7, why="series of math/math.glslh, where exp(x) - 1 and log(1 + x) would cancel")
    for function in (torch.expm1, torch.log1p):
        e2e.check(Apply(function), near, budget=budget)


def test_inversion(e2e) -> None:
    for x in (values() > 0, values().to(torch.int32)):
        e2e.check(Apply(torch.bitwise_not), x)
        e2e.check(Apply(torch.logical_not), x)
    e2e.check(Apply(torch.logical_not), torch.tensor([0.0, -0.0, 1.0, float("nan")]))


@pytest.mark.parametrize("shape", [(), (1,), (3,), (4,), (1, 0, 5), (2, 1, 3, 129)], ids=str)
def test_shapes(e2e, shape) -> None:
    e2e.check(Apply(torch.tanh), torch.randn(shape), budget=ACTIVATION)


def test_a_changing_shape(e2e) -> None:
    size = torch.export.Dim("n", min=1, max=4096)
    runs = [values(torch.float32, n) for n in (1, 5, 4096, 5)]
    e2e.check(
        Apply(torch.sigmoid), values(torch.float32, 100), dynamic_shapes=({0: size},), runs=runs, budget=ACTIVATION
    )


def test_every_row_has_a_case() -> None:
    tested = {name(function) for function in FUNCTIONS} | {"sgn"}
    assert tested >= {str(target).split(".")[1] for target in [*_FUNCTIONS, *_ROUNDING]}


def test_double_is_refused(e2e) -> None:
    e2e.refuses(Apply(torch.exp), values(torch.float64), match="float64|f64")
