# SPDX-License-Identifier: Apache-2.0
"""Chains of elementwise operators against the single operators, bit for bit, and against eager PyTorch."""

from __future__ import annotations

import math
import random
import re
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from support.one_call import OneCall
from support.unfused import CHAIN, Function

import pumice
from pumice.fusion.elementwise_chain import FUNCTIONS

ROOT = Path(__file__).resolve().parents[2]
INF, NAN = float("inf"), float("nan")


def both(module, inputs, operators, *, runs=(), dynamic_shapes=None, budget=3e-6):
    """Runs a model with chains and without: the same bits. `operators`: all that the fused one calls. Eager PyTorch may
    differ by `budget` of the largest finite result, and has the same NaN and infinities."""
    results = []
    for without in ((), (CHAIN,)):
        program = pumice.export(module, inputs, dynamic_shapes=dynamic_shapes, options={"without_fusion": without})
        if not without:
            assert program.report.operators == operators, program.report.operators
        session = pumice.load(bytes(program))
        results.append([session(*run) for run in (inputs, *runs)])
    for run, ours, single in zip((inputs, *runs), *results, strict=True):
        assert ours.dtype == single.dtype
        same = (ours == single) | (ours.isnan() & single.isnan())
        assert same.all(), f"{int((~same).sum())} elements differ from single operators"
        with torch.no_grad():
            want = module(*run)
        assert torch.equal(ours.isnan(), want.isnan())
        finite = want.isfinite()
        assert torch.equal(ours[~finite].nan_to_num(2.0), want[~finite].nan_to_num(2.0))
        largest = float(want[finite].abs().max()) if finite.any() else 0.0
        worst = float((ours[finite].double() - want[finite].double()).abs().max()) if finite.any() else 0.0
        assert worst <= budget * max(1.0, largest), worst


def budget_of(dtype, steps=8):
    """A rounding of every step: fp16 of eager PyTorch rounds as often."""
    return 4e-6 if dtype is torch.float32 else steps * 2**-11


def gelu_of_gpt2(x):
    return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * torch.pow(x, 3.0))))


FRAGMENTS = {
    "gelu of GPT-2": (gelu_of_gpt2, [(5, 37)]),
    "soft cap": (lambda x: torch.tanh(x / 30.0) * 30.0, [(4, 37)]),
    "swish": (lambda x: x * torch.sigmoid(x), [(3, 5)]),
    "mish": (lambda x: x * torch.tanh(F.softplus(x)), [(3, 7)]),
    "image": (lambda x, mean, std: (x / 255.0 - mean) / std, [(2, 3, 5, 7), (1, 3, 1, 1), (1, 3, 1, 1)]),
    "image of whole vec4 groups": (lambda x, a, b: (x / 255.0 - a) / b, [(2, 3, 4, 8), (1, 3, 1, 1), (8,)]),
    "scale and shift": (lambda x, a, b: F.silu(x * a + b), [(2, 8, 3, 5), (2, 8, 1, 1), (2, 8, 1, 1)]),
    "layer scale": (lambda x, y, scale: torch.relu(x + y * scale), [(3, 5, 8), (3, 5, 8), (8,)]),
    "gates": (lambda z, n, h: (1 - torch.sigmoid(z)) * torch.tanh(n) + torch.sigmoid(z) * h, [(5, 9), (5, 9), (5, 9)]),
    "outer": (lambda a, b: torch.exp(-(a - b).abs()), [(5, 1), (1, 7)]),
    "leaky": (lambda x, y: F.leaky_relu(x, 0.1) * F.elu(y) - F.hardswish(x), [(3, 11), (3, 11)]),
    "clamps": (lambda x: (x * 2).clamp(-0.5, 0.75) + x.clamp(min=0.1), [(7,)]),
    "choices": (lambda x, y: torch.where(x > y, x * y, torch.where(x <= 0.1, -x, y)), [(5, 3), (3,)]),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
@pytest.mark.parametrize("name", FRAGMENTS)
def test_fragments(name, dtype) -> None:
    function, shapes = FRAGMENTS[name]
    torch.manual_seed(1)
    inputs = tuple(torch.randn(shape).to(dtype) for shape in shapes)
    if name.startswith("image"):
        inputs = (inputs[0], inputs[1], inputs[2].abs() + 0.5)
    operators = {CHAIN: 1}
    if name == "mish" and dtype is torch.float16:  # softplus is computed in fp32
        operators = {"cast": 2, CHAIN: 2}
    both(Function(function), inputs, operators, budget=budget_of(dtype))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
@pytest.mark.parametrize("size", [1, 3, 4, 5, 129])
def test_special_values_and_tails(size, dtype) -> None:
    x = torch.tensor([NAN, INF, -INF, 0.0, -0.0, 1e-7, 60000.0, -60000.0]).repeat(17)[:size].to(dtype)
    y = torch.tensor([1.0, -2.0, NAN, INF, 0.5]).repeat(26)[:size].to(dtype)
    both(Function(lambda x, y: torch.maximum(F.relu(x) * 2, y).clamp(-1, 60000)), (x, y), {CHAIN: 1})
    both(Function(lambda x, y: torch.where(x == y, x + 1, y - x)), (x, y), {CHAIN: 1}, budget=budget_of(dtype, 1))


def test_a_number_is_compared_in_the_dtype_of_the_tensor() -> None:
    x = torch.tensor([0.1, 0.1001, 0.0999]).half()
    both(Function(lambda x: torch.where(x == 0.1, x * 2, x + 1)), (x,), {CHAIN: 1}, budget=2**-10)


def test_conditions_from_outside() -> None:
    torch.manual_seed(0)
    x, mask = torch.randn(2, 5, 7), torch.rand(5, 1) > 0.5
    both(Function(lambda x, mask: (x / 3).masked_fill(mask, -INF).sigmoid()), (x, mask), {CHAIN: 1})
    other = torch.rand(7) > 0.5  # a chain has one condition
    two = Function(lambda x, a, b: (x / 3).masked_fill(a, 1).neg().masked_fill(b, 2))
    both(two, (x, mask, other), {CHAIN: 2})


def test_what_others_read_is_kept() -> None:
    torch.manual_seed(0)
    x = torch.randn(3, 5)
    both(Function(lambda x: torch.cat([(y := torch.tanh(x * 2)), y.neg().exp()])), (x,), {CHAIN: 2, "cat": 1})
    program = pumice.export(Function(lambda x: ((y := x * 2), y.exp())), (x,))
    assert program.report.operators == {"mul": 1, "exp": 1}


def test_long_chains_are_cut() -> None:
    def function(x):
        for k in range(19):
            x = x * 0.5 + k if k % 3 else torch.tanh(x)
        return x

    torch.manual_seed(0)
    both(Function(function), (torch.randn(3, 5),), {CHAIN: 4})


def test_many_tensors_are_several_chains() -> None:
    torch.manual_seed(0)
    inputs = tuple(torch.randn(3, 5) for _ in range(7))
    both(Function(lambda a, b, c, d, e, f, g: a * b + c * d + e * f - g), inputs, {CHAIN: 2})


def test_changing_sizes() -> None:
    torch.manual_seed(0)
    rows, columns = torch.export.Dim("rows", min=1, max=64), torch.export.Dim("columns", min=2, max=300)
    shapes = {"inputs": ({0: rows, 1: columns}, {1: columns})}
    runs = [(torch.randn(r, c), torch.randn(1, c)) for r, c in ((3, 5), (1, 300), (64, 8), (9, 2))]
    both(
        Function(lambda x, y: gelu_of_gpt2(x + y)),
        (torch.randn(6, 8), torch.randn(1, 8)),
        {CHAIN: 1, "add": 1},
        runs=runs,
        dynamic_shapes=shapes,
    )


def test_sums_behind_convolutions_are_left_to_them() -> None:
    conv = torch.nn.Conv2d(8, 8, 3, padding=1).eval()
    module = Function(lambda conv, x: torch.tanh((conv(x) + x) * 2), conv)
    both(module, (torch.randn(1, 8, 6, 6),), {"conv2d": 1, "add": 1, CHAIN: 1})
    scaled = Function(lambda conv, x, s: conv(torch.tanh(x) * s), torch.nn.Conv2d(8, 8, 1).eval())
    both(scaled, (torch.randn(1, 8, 6, 6), torch.randn(1, 8, 1, 1)), {"conv2d": 1, "mul": 1, "tanh": 1})


def test_textures_have_no_chains() -> None:
    program = pumice.export(
        Function(lambda x: torch.tanh(x).neg()), (torch.randn(3, 8),), options={"storage": "texture"}
    )
    assert program.report.operators == {"tanh": 1, "neg": 1}


def test_the_report_says_where_a_step_went() -> None:
    report = pumice.export(Function(lambda x: torch.tanh(x).neg()), (torch.randn(3, 8),)).report
    rows = {row.node: (row.status, row.detail) for row in report.rows}
    assert rows["tanh"] == ("fused", "neg") and rows["neg"] == ("runs", CHAIN)


def _random_function(rng, tensors):
    """Of a few tensors: steps drawn at random, each of an operand that was made before."""
    one = [torch.tanh, torch.sigmoid, torch.neg, torch.relu, torch.abs, F.silu, torch.erf, F.hardswish]
    two = [torch.add, torch.sub, torch.mul, torch.maximum, torch.minimum]
    steps = [
        (rng.choice(one) if rng.random() < 0.4 else rng.choice(two), rng.random(), rng.random()) for _ in range(12)
    ]

    def function(*inputs):
        made = [inputs[0]]
        for step, at, other in steps:
            a = made[int(at * len(made))] if at < 0.3 else made[-1]
            rest = [*made, *inputs, 0.75, -1.5]
            made.append(step(a) if step in one else step(a, _tensor(rest[int(other * len(rest))], a)))
        return made[-1]

    return function


def _tensor(value, like):
    return value if isinstance(value, torch.Tensor) else torch.tensor(value, dtype=like.dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
@pytest.mark.parametrize("seed", range(6))
def test_random_chains(seed, dtype) -> None:
    rng = random.Random(seed)
    torch.manual_seed(seed)
    shape = rng.choice([(2, 3, 5), (3, 4, 8), (1, 7), (2, 3, 1, 9)])
    inputs = [torch.randn(shape).to(dtype)]
    for _ in range(2):
        inputs.append(torch.randn([size if rng.random() < 0.6 else 1 for size in shape]).to(dtype))
    function = _random_function(rng, len(inputs))
    program = pumice.export(Function(function), tuple(inputs))
    assert program.report.operators.get(CHAIN, 0) >= 1
    both(Function(function), tuple(inputs), program.report.operators, budget=budget_of(dtype, 24))


def test_the_codes_are_those_of_the_shader() -> None:
    text = (ROOT / "glsl/elementwise_chain.glsl").read_text()
    assert tuple(re.search(r"#pragma choice FUNCTION (.*)", text)[1].split()) == FUNCTIONS


def test_the_codes_of_files_stay() -> None:
    """New ones come last."""
    first = (
        "gelu gelu_tanh tanh sigmoid silu exp expm1 log log1p sqrt rsqrt reciprocal erf hardswish hardsigmoid relu neg "
        "abs square add sub mul div maximum minimum pow prelu elu add_relu clamp where eq ne lt le gt ge"
    )
    assert FUNCTIONS[: len(first.split())] == tuple(first.split())


MUL, TANH, WHERE, GT, CLAMP = (FUNCTIONS.index(name) for name in ("mul", "tanh", "where", "gt", "clamp"))
WRONG = {
    "a function that is not there": [99, 8, 0, 0],
    "a negative function": [-1, 8, 0, 0],
    "a later step": [TANH, 1, 0, 0, TANH, 0, 0, 0],
    "itself": [TANH, 0, 0, 0],
    "a tensor that is not there": [MUL, 8, 10, 0],
    "a number that is not there": [MUL, 8, 18, 0],
    "a condition that is not there": [WHERE, 12, 8, 8],
    "an operand beyond all": [TANH, 2**40, 0, 0],
    "an operand too many": [MUL, 8, 9, 200],
    "one operand too few": [CLAMP, 8, 16, 0],
    "a number as a condition": [WHERE, 8, 8, 9],
    "a truth value as a number": [GT, 8, 9, 0, TANH, 0, 0, 0],
    "a truth value as the result": [GT, 8, 9, 0],
    "no steps": [],
    "half a step": [TANH, 8],
    "too many steps": [TANH, 8, 0, 0] * 9,
}


@pytest.mark.parametrize("what", WRONG)
def test_wrong_steps_of_a_file_are_refused(what) -> None:
    b = OneCall()
    x = [b.input(torch.float32, (2, 3)), b.input(torch.float32, (3,))]
    b.call(CHAIN, [x, None, WRONG[what], 0.5, 1.5, *[None] * 6], torch.float32, (2, 3))
    with pytest.raises(pumice.Error, match=CHAIN):
        pumice.load(b.bytes())
