# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import operator

import pytest
import torch
from support.budget import ACTIVATION, ARITHMETIC, EXACT, POW, Budget
from support.many import FLOATS, Many, normal
from torch.nn import functional as F

INF, NAN = float("inf"), float("nan")
INTEGERS = [torch.int64, torch.int32, torch.int8, torch.uint8]
COMPARE = [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge]
LOGIC = [torch.logical_and, torch.logical_or, torch.logical_xor]
BITS = [operator.and_, operator.or_, operator.xor]
EXACT_FLOAT = [torch.maximum, torch.minimum, torch.fmod, torch.remainder, torch.floor_divide]
FLOAT = [
    torch.add, torch.sub, torch.mul, torch.div, torch.atan2, lambda a, b: torch.add(a, b, alpha=-0.5),
    lambda a, b: torch.sub(a, b, alpha=2), lambda a, b: torch.rsub(a, b, alpha=3),
    lambda a, b: torch.div(a, b, rounding_mode="floor"), lambda a, b: torch.div(a, b, rounding_mode="trunc"),
]  # fmt: skip
SCALAR = [
    lambda x: x + 1, lambda x: 1 - x, lambda x: x * 2.5, lambda x: 3 / x, lambda x: x / 7, lambda x: x // 2,
    lambda x: x % 3, lambda x: 7 % x, lambda x: torch.fmod(x, -1.5), lambda x: x > 0.1, lambda x: x <= 0,
    lambda x: x == 1, lambda x: x != 1.5,
]  # fmt: skip
ATAN2 = Budget(atol=4e-7, why="atan2 of math/arithmetic.glslh")


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_float(e2e, dtype) -> None:
    a, b = normal(5, 7, dtype=dtype), normal(5, 7, dtype=dtype, seed=2)
    budget = Budget(rtol=ARITHMETIC.rtol, atol=ATAN2.atol, why="ARITHMETIC, and ATAN2")
    e2e.check(Many(FLOAT), a, b, budget=budget, reference="eager", all_features=True)
    e2e.check(Many([*EXACT_FLOAT, *COMPARE, *LOGIC]), a, b, reference="eager")


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_slopes(e2e, dtype) -> None:
    """Functions of one tensor that are another multiple of it below 0."""
    functions = [
        lambda x: F.leaky_relu(x, 0.2), lambda x: F.elu(x), lambda x: F.elu(x, 0.7), F.selu,
        lambda x: F.prelu(x, torch.tensor([0.1, -0.5, 2.0], dtype=dtype)),
        lambda x: F.prelu(x, torch.tensor([0.3], dtype=dtype)),
        lambda x: F.prelu(x[0, 0, 0], torch.tensor([0.3], dtype=dtype)),
        lambda x: F.prelu(x[0, 0, 0], torch.tensor(0.3, dtype=dtype)),
    ]  # fmt: skip
    special = torch.tensor([0.0, -0.0, INF, -INF, NAN, -1e-6, -90.0, 1.0], dtype=dtype).expand(2, 3, 8)
    x = normal(2, 3, 8, dtype=dtype)
    e2e.check(Many(functions), x, runs=[(special.contiguous(),)], budget=ACTIVATION, reference="eager")


def test_relu_of_a_sum(e2e) -> None:
    """One operator, where nothing else reads the sum."""
    a, b = normal(3, 5), normal(5, seed=2)
    a[0] = torch.tensor([NAN, INF, -INF, -0.0, 0.0])
    e2e.check(Many([lambda a, b: torch.relu(a + b)]), a, b, expect_ops={"add_relu": 1, "add": 0, "relu": 0})
    e2e.check(Many([lambda a, b: torch.relu(torch.add(a, b, alpha=2))]), a, b, expect_ops={"add": 1, "relu": 1})


def test_special_values(e2e) -> None:
    """Every pair of them: NaN and infinity where PyTorch has them. No subnormals: Vulkan may flush them to zero."""
    values = torch.tensor([0.0, -0.0, 1.0, -2.5, 3e19, -1e-19, INF, -INF, NAN])
    a, b = (side.flatten() for side in torch.meshgrid(values, values, indexing="ij"))
    functions = [
        torch.add,
        torch.mul,
        torch.div,
        torch.fmod,
        torch.remainder,
        torch.maximum,
        torch.minimum,
        *COMPARE,
        *LOGIC,
    ]
    functions += [lambda a, b: a.isnan(), lambda a, b: b.isinf()]
    e2e.check(Many(functions), a, b, reference="eager", budget=ARITHMETIC)


def test_fmod_is_exact(e2e) -> None:
    a, b = normal(1000) * 10.0 ** (normal(1000, seed=3) * 8), normal(1000, seed=2) * 10.0 ** normal(1000, seed=4)
    e2e.check(Many([torch.fmod]), a, b, reference="eager", budget=EXACT)


def test_power(e2e) -> None:
    x = normal(9, 4).abs() + 0.01
    exponents = [2, 3, 0.5, -1, -2, 1, 0, 7, 10, 1.5]
    functions = [lambda x, _, n=n: x**n for n in exponents] + [torch.pow, lambda _, y: 2.5**y]
    e2e.check(Many(functions), x, normal(9, 4, seed=2), budget=POW)
    signed = torch.tensor([-2.0, -0.0, 0.0, 1.0, -1.0, 3.0, INF, -INF, NAN])
    a, b = (
        side.flatten()
        for side in torch.meshgrid(
            signed, torch.tensor([0.0, 2.0, 3.0, -1.0, 0.5, -0.5, INF, -INF, NAN]), indexing="ij"
        )
    )
    e2e.check(Many([torch.pow]), a, b, budget=POW, reference="eager")
    integers = normal(13, dtype=torch.int64, seed=3) % 7 - 3
    e2e.check(Many([lambda x: x**3, lambda x: x**2, lambda x: x**0]), integers)


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_integer(e2e, dtype) -> None:
    a, b = normal(6, 9, dtype=dtype), normal(6, 9, dtype=dtype, seed=2)
    b[b == 0] = 3
    divisions = [torch.floor_divide, torch.remainder, torch.fmod, lambda a, b: torch.div(a, b, rounding_mode="trunc")]
    multiples = [
        lambda a, b: a.add(b, alpha=-3),
        lambda a, b: a.sub(b, alpha=-127),
        lambda a, b: torch.rsub(a, b, alpha=5),
    ]
    functions = [torch.add, torch.sub, torch.mul, torch.maximum, torch.minimum, *BITS, *COMPARE, *LOGIC, *divisions]
    e2e.check(Many(functions + multiples), a, b)
    e2e.check(Many([torch.div]), a, b, budget=ARITHMETIC)


def test_bool(e2e) -> None:
    a, b = normal(3, 11, dtype=torch.bool), normal(3, 11, dtype=torch.bool, seed=2)
    e2e.check(Many([torch.add, torch.mul, torch.eq, torch.maximum, *BITS, *LOGIC]), a, b)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.int64, torch.uint8], ids=str)
def test_numbers(e2e, dtype) -> None:
    x = normal(4, 5, dtype=dtype, seed=5)
    functions = SCALAR[:8] if dtype is torch.uint8 else SCALAR
    if not dtype.is_floating_point:
        x[x == 0] = 1  # a division by zero is an error in PyTorch
    e2e.check(Many(functions), x, reference="eager", budget=ARITHMETIC)


def test_promotion(e2e) -> None:
    pairs = [
        (torch.float16, torch.float32), (torch.int64, torch.float32), (torch.bool, torch.int64),
        (torch.uint8, torch.int32), (torch.bool, torch.float16),
    ]  # fmt: skip
    for left, right in pairs:
        a, b = normal(3, 5, dtype=left), normal(3, 5, dtype=right, seed=2)
        e2e.check(Many([torch.add, torch.mul, torch.lt, torch.logical_or]), a, b, reference="eager")
    e2e.check(
        Many([torch.add, torch.mul, torch.gt]), normal(3, 5, dtype=torch.float16), torch.tensor(2.5), reference="eager"
    )


SHAPES = [
    ((5, 8), (8,)), ((5, 7), (7,)), ((5, 8), (5, 1)), ((5, 7), (5, 1)), ((1, 8), (5, 1)), ((), (3, 4)),
    ((2, 3, 4), (3, 1)), ((2, 1, 3, 1, 2), (1, 4, 1, 5, 1)), ((1,), (1,)), ((), ()), ((0, 3), (1, 3)),
    ((2, 1, 2, 1, 2, 1, 2, 1), (1, 3, 1, 2, 1, 3, 1, 2)),
]  # fmt: skip


@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_broadcast(e2e, shapes) -> None:
    a, b = normal(*shapes[0]), normal(*shapes[1], seed=2)
    e2e.check(Many([torch.sub, lambda a, b: b - a, torch.lt]), a, b)
    e2e.check(Many([torch.mul, lambda a, b: b < a]), a.to(torch.int8), b.to(torch.int8))


def test_expand_is_free(e2e) -> None:
    functions = [lambda a, b: a + b.expand(6, 5), lambda a, b: a[:, :1].expand(6, 5) * b.expand(6, 5)]
    e2e.check(Many(functions[:1]), normal(6, 5), normal(5), expect_ops={"expand": 0, "add": 1})
    e2e.check(Many(functions), normal(6, 5), normal(5))


def test_sizes_as_numbers(e2e) -> None:
    rows = torch.export.Dim("rows", min=2, max=64)
    e2e.check(
        Many([lambda x: x * x.shape[0], lambda x: x / x.shape[0], lambda x: x.shape[0] - x]),
        normal(6, 5),
        dynamic_shapes={"inputs": ({0: rows},)},
        runs=[(normal(9, 5),)],
        budget=ARITHMETIC,
    )


def test_refusals(e2e) -> None:
    e2e.refuses(Many([lambda x: x + 2**40]), normal(3, dtype=torch.int64), match="fit")
    e2e.refuses(Many([lambda x: x > -1]), normal(3, dtype=torch.uint8), match="fit")
    e2e.refuses(Many([lambda x: x.add(x, alpha=2**40)]), normal(3, dtype=torch.int64), match="fit")
    e2e.refuses(Many([torch.add]), normal(3, dtype=torch.uint8), normal(3, dtype=torch.int8), match="int16")
