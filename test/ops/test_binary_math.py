# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
import torch
from support.budget import EXACT, ULP, Budget
from support.many import FLOATS, Many, normal

from pumice.ops.binary_math import _FUNCTIONS

HYPOT = Budget(rtol=8 * ULP, why="a division, a root of 4.5 ulp of half the exponent's error, a product")
LOG_SUM = Budget(rtol=4 * ULP, atol=2.0**-20, why="log_1_plus of an exp: absolute 2^-21 twice")
FUNCTIONS = {
    torch.hypot: HYPOT, torch.copysign: EXACT, torch.fmax: EXACT, torch.fmin: EXACT,
    torch.logaddexp: LOG_SUM, torch.logaddexp2: LOG_SUM, torch.nextafter: EXACT,
}  # fmt: skip
NAMES = [function.__name__ for function in FUNCTIONS]
SPECIAL = [0.0, -0.0, 1.0, -1.0, 2.5, 65504.0, -65504.0, torch.inf, -torch.inf, torch.nan]


def test_every_row_has_a_case() -> None:
    assert set(NAMES) == set(_FUNCTIONS.values())


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("function", FUNCTIONS, ids=NAMES)
def test_float(e2e, function, dtype) -> None:
    """Every pair of special numbers; broadcast both ways, odd, empty and of one element."""
    if function is torch.nextafter and dtype is torch.float16:
        pytest.skip("eager PyTorch has none of fp16 on the CPU")
    special = torch.tensor(SPECIAL, dtype=dtype)
    module, budget = Many([function, lambda a, b: function(b, a)]), FUNCTIONS[function]
    reference = "eager" if function is torch.nextafter else "auto"
    e2e.check(module, special[:, None], special[None], budget=budget, reference=reference, all_features=True)
    for shapes in (((5, 37), (37,)), ((5, 1), (3, 1, 7)), ((0, 3), (3,)), ((), (1,))):
        inputs = [normal(*shape, dtype=dtype, seed=seed) for seed, shape in enumerate(shapes)]
        e2e.check(module, *inputs, budget=budget, reference=reference)


def test_numbers_and_integers(e2e) -> None:
    e2e.check(Many([lambda x: torch.copysign(x, -1.0), lambda x: torch.copysign(x, 0)]), normal(3, 5))
    a, b = (normal(4, 9, dtype=torch.int64, seed=seed) for seed in (1, 2))
    e2e.check(Many([torch.fmax, torch.fmin, torch.copysign]), a, b)


def test_next_to_every_kind_of_number(e2e) -> None:
    """Across 0, subnormal numbers, to infinity."""
    x = torch.tensor([0.0, -0.0, 1e-45, -1e-45, 1.1754942e-38, 1.1754944e-38, 3.4028235e38, -3.4028235e38, 1.0, 2.0])
    up, down = torch.full_like(x, torch.inf), torch.full_like(x, -torch.inf)
    for towards in (up, down):
        e2e.check(Many([torch.nextafter]), x, towards, reference="eager")


def test_no_square_overflows(e2e) -> None:
    x = torch.tensor([1e30, 3e38, 1e-30, -2e25])
    e2e.check(Many([torch.hypot]), x, x.flip(0) / 2, budget=HYPOT)
