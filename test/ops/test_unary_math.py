# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
import torch
from support.budget import EXACT, ULP, Budget
from support.many import FLOATS, Many, normal

from pumice.ops.unary_math import _FUNCTIONS

ARC = Budget(rtol=8 * ULP, atol=2e-7, why="a root of 4.5 ulp below a polynomial; a sum with pi or pi/2 rounds to 2e-7")
BY_EXP = Budget(rtol=16 * ULP, why="twice safe_exp: 1.7 ulp and that of exp2 below 1/2, 4 ulp")
TANGENT = Budget(rtol=12 * ULP, atol=1e-37, why="sine and cosine of a reduced angle, 4 ulp each, and a division")
BY_LOG = Budget(rtol=12 * ULP, atol=2.0**-20, why="log_1_plus of a sum: 4 ulp, and absolute 2^-21 where log is")
ERFC = Budget(rtol=24 * ULP, atol=1e-37, why="safe_exp twice, a polynomial, and t, a division; no subnormals")
GAMMA = Budget(rtol=16 * ULP, atol=4e-6, why="near a zero two terms of up to 8 cancel, each off by 3 ulp of its log")
FUNCTIONS = {
    torch.asin: ARC, torch.acos: ARC, torch.sinh: BY_EXP, torch.cosh: BY_EXP, torch.tan: TANGENT,
    torch.asinh: BY_LOG, torch.acosh: BY_LOG, torch.atanh: BY_LOG, torch.exp2: BY_EXP, torch.erfc: ERFC,
    torch.lgamma: GAMMA, torch.digamma: GAMMA,
}  # fmt: skip
SPECIAL = [0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 2.0, -2.0, 1.5, -2.5, 1e-6, -1e-6, 9.75, -7.25, 30.0, -30.0, 88.5, 90.0,
           200.0, 9000.5, torch.inf, -torch.inf, torch.nan]  # fmt: skip
NAMES = [function.__name__ for function in FUNCTIONS]


def test_every_row_has_a_case() -> None:
    assert set(NAMES) == set(_FUNCTIONS.values())


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("function", FUNCTIONS, ids=NAMES)
def test_float(e2e, function, dtype) -> None:
    """Numbers of every size that the function takes, and those where it has none; odd shapes, empty, one element."""
    special = torch.tensor(SPECIAL, dtype=dtype)
    if function is torch.digamma:
        special = special[special != -torch.inf]  # eager PyTorch says -inf there in fp32, NaN in fp64
    dense = torch.cat([torch.linspace(-4, 12, 4001), torch.linspace(-1, 1, 2001)]).to(dtype)
    runs = [special, dense, normal(0, dtype=dtype), normal(1, dtype=dtype)]
    size = torch.export.Dim("n", min=0, max=10000)
    e2e.check(Many([function]), normal(37, dtype=dtype), runs=runs, dynamic_shapes={"inputs": ({0: size},)},
              budget=FUNCTIONS[function], all_features=True, expect_ops=[function.__name__])  # fmt: skip


def test_integers_become_floats(e2e) -> None:
    for dtype in (torch.int64, torch.uint8, torch.bool):
        x = normal(3, 7, dtype=torch.float32).abs().to(dtype)
        e2e.check(Many(list(FUNCTIONS)), x, budget=GAMMA, expect_ops=["cast"])


@pytest.mark.parametrize(
    "function", [torch.sinh, torch.tan, torch.erfc, torch.exp2, torch.asin], ids=lambda f: f.__name__
)
def test_every_kind_of_number(e2e, function) -> None:
    """Evenly over the exponents of fp32: where sinh leaves fp32, where an angle is huge."""
    bits = torch.arange(0x00800000, 0x7F800000, 262139, dtype=torch.int64).to(torch.int32)
    x = bits.view(torch.float32)
    e2e.check(Many([lambda x: function(x), lambda x: function(-x)]), x, budget=FUNCTIONS[function], reference="f64")


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_round_to_decimals(e2e, dtype) -> None:
    decimals = [lambda x, n=n: torch.round(x, decimals=n) for n in (0, 2, -2)]
    for x in (normal(7, 33) * 50, torch.tensor([0.125, -0.375, torch.nan, torch.inf, -torch.inf])):
        budget = Budget(rtol=3 * ULP, why="Vulkan allows 2.5 ulp for a division")
        e2e.check(Many(decimals), x.to(dtype), budget=budget, reference="eager")
    e2e.refuses(Many([lambda x: torch.round(x, decimals=60)]), x.to(dtype), match="10\\^60 is not a number")


BF16 = [0.0, -0.0, 1.0, 1.00390625, 1.01171875, 1.003906369, -3.1415927, 3.3e38, 3.39e38, 1e-38, torch.inf, torch.nan]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.int64, torch.uint8], ids=str)
def test_a_conversion_to_bfloat16_rounds(e2e, dtype) -> None:
    """To the nearest, ties to even, and beyond its largest number to infinity."""
    most = 250 if dtype is torch.uint8 else 999
    x = torch.tensor(BF16).to(dtype) if dtype.is_floating_point else torch.arange(most).to(dtype)
    for given in (x, (normal(most).abs() * 100).to(dtype)):
        e2e.check(Many([lambda x: x.bfloat16().float()]), given, budget=EXACT, reference="eager")


def test_a_model_in_bfloat16_is_not_rounded(e2e) -> None:
    program = e2e.export(Many([lambda x: (x.float() * 2).bfloat16()]), normal(5).bfloat16())
    assert program.report.operators == {"mul": 1}
    assert any("bfloat16" in note for note in program.report.notes)
