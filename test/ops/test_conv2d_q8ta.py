# SPDX-License-Identifier: Apache-2.0
"""Convolutions with int8 weights by output channel: x as floats, and as 8-bit integers with floats or integers out,
against fp64 of the same integers."""

from __future__ import annotations

import pytest
import torch
from support.conv import CASES, MATRIX_CASES, Case, convolve, has_splits, pads, pair
from support.device import is_llvmpipe
from support.int8 import check_integers
from support.one_call import OneCall
from support.quantized import check_product
from support.sums import Sums, sums

import pumice

EXACT_SUMS = {"fixed": 6, "per_term": 0}  # the roundings of conv_roundings (ops/conv/kernels.h) after a sum of integers
LIMITS = {torch.int8: (-128, 127), torch.uint8: (0, 255)}
# By tiles and output by output, groups that begin inside of a row panel, uneven images.
CHOSEN = [CASES[i] for i in (0, 2, 4, 6, 8, 9, 12, 13)]


class Weight:
    """int8 with a scale, and maybe a zero point, for each output channel."""

    def __init__(self, case: Case, zero: bool) -> None:
        kernel = pair(case.kernel)
        self.case = case
        self.q = torch.randint(-128, 128, (case.out, case.channels // case.groups, *kernel)).to(torch.int8)
        self.scale = torch.rand(case.out, 1) * 0.02 + 0.001
        self.zero = torch.randint(-128, 128, (case.out, 1)).to(torch.int8) if zero else None
        self.bias = torch.randn(case.out) if case.bias else None
        self.k = self.q[0].numel()

    def real(self) -> torch.Tensor:
        zero = 0.0 if self.zero is None else self.zero.double()
        return ((self.q.flatten(1).double() - zero) * self.scale.double()).view(self.q.shape)

    def arguments(self, program: OneCall, act: int) -> list:
        case = self.case
        weight = program.constant(self.q.flatten(1)), program.constant(self.scale), program.constant(self.zero)
        geometry = pair(case.kernel), pair(case.stride), pads(case), pair(case.dilation), case.groups, False, act
        return [*weight, program.constant(self.bias), *geometry]

    def product(self, x: torch.Tensor) -> Sums:
        exact = sums(lambda x, weight: convolve(self.case, x, weight, None), x, self.real(), terms=self.k)
        return exact.plus(None if self.bias is None else self.bias[:, None, None])


@pytest.mark.parametrize(("dtype", "zero"), [(torch.float32, True), (torch.float16, False)], ids=str)
def test_floats(dtype, zero) -> None:
    torch.manual_seed(1)
    program, cases = OneCall(), CHOSEN if zero else CHOSEN[1::2]
    weights, inputs = [Weight(case, zero) for case in cases], [case.x(dtype) for case in cases]
    for weight, x in zip(weights, inputs, strict=True):
        shape = weight.product(x).want.shape
        arguments = [program.input(dtype, x.shape), *weight.arguments(program, 0)]
        program.call("conv2d_q8csw", arguments, dtype, shape)
    for weight, x, got in zip(weights, inputs, pumice.load(program.bytes())(*inputs), strict=True):
        check_product(got, weight.product(x), 8, str(weight.case))


def check_all(x_dtype: torch.dtype, out_dtype: torch.dtype, cases: list[Case], features: tuple, zeros: bool) -> list:
    """Padding is a real 0 for every zero point; all kernels give the same bits. Returns those of the last feature,
    and "splits" for each that ran in splits."""
    torch.manual_seed(2)
    program, act, floats = OneCall(), int(x_dtype is torch.int8), out_dtype.is_floating_point
    weights = [Weight(case, zeros and index % 3 == 1) for index, case in enumerate(cases)]
    x_low, x_high = LIMITS[x_dtype]
    x_scale, x_zero, out_zero, out_scale = 0.02, x_low + 37, 100, 0.11
    inputs = [torch.randint(x_low, x_high + 1, case.x().shape).to(x_dtype) for case in cases]
    reals = [(x.double() - x_zero) * x_scale for x in inputs]
    low, high = LIMITS.get(out_dtype, (0, 0))
    tail = [] if floats else [out_scale, out_zero, low, high - 5]
    for weight, x, real in zip(weights, inputs, reals, strict=True):
        arguments = [program.input(x_dtype, x.shape), *weight.arguments(program, act), x_scale, x_zero, *tail]
        name = "conv2d_q8ta_q8csw" if floats else "q8ta_conv2d"
        program.call(name, arguments, out_dtype, weight.product(real).want.shape)
    first = None
    for feature in features:
        session = pumice.load(program.bytes(), features=feature)
        results = session(*inputs)
        first = results if first is None else first
        for weight, real, got, same in zip(weights, reals, results, first, strict=True):
            assert torch.equal(got, same), f"{weight.case}, features={feature}"
            exact = weight.product(real)
            exact = exact.then(torch.relu) if act else exact
            if floats:
                check_product(got, exact, EXACT_SUMS["fixed"], f"{weight.case}, features={feature}", per_term=0)
            else:
                check_integers(got, exact, EXACT_SUMS, out_scale, out_zero, low, high - 5)
    rows = session.profile(*inputs)
    return [row.kernel.split("[")[0] for row in rows] + ["splits" for row in rows if has_splits(row)]


@pytest.mark.parametrize(
    ("x_dtype", "out_dtype"),
    [(torch.int8, torch.int8), (torch.uint8, torch.uint8), (torch.int8, torch.float32)],
    ids=str,
)
def test_integers(x_dtype, out_dtype) -> None:
    cases = CHOSEN if x_dtype is torch.int8 else CHOSEN[1::2]
    ran = check_all(x_dtype, out_dtype, cases, (None, "none,like_gpu"), True)
    assert {"conv2d_direct_int8", "conv2d_tiled_int8", "conv2d_depthwise_int8"} <= set(ran), ran


@pytest.mark.skipif(not is_llvmpipe(), reason="a kernel for the matrices of lavapipe")
def test_matrices() -> None:
    ran = check_all(torch.uint8, torch.uint8, MATRIX_CASES[:2], ("kernel=conv8_16x32",), False)
    assert ran.count("conv2d_matrix_int8") == 2 and ran.count("splits") == 1, ran


@pytest.mark.parametrize(("x_dtype", "out_dtype"), [(torch.int8, torch.int8), (torch.uint8, torch.float32)], ids=str)
def test_dot_products(x_dtype, out_dtype) -> None:
    """Sums in splits, borders, tails of channel groups and tiles; grouped ones are left to other kernels."""
    cases = [*MATRIX_CASES, CASES[4], CASES[6]] if x_dtype is torch.int8 else MATRIX_CASES[1:3]
    ran = check_all(x_dtype, out_dtype, cases, ("", "kernel=conv_dot32x32"), False)
    assert ran.count("conv2d_dot") == len(cases) - (CASES[6] in cases), ran
    assert ran.count("splits") == (MATRIX_CASES[0] in cases), ran


def test_values_larger_than_a_binding() -> None:
    """Output channels, and images, in blocks."""
    cases = [Case(1, 64, 64, 3, (5, 6), 1, 1), Case(40, 8, 16, 3, (8, 8), 1, 1)]
    check_all(torch.int8, torch.int8, cases, ("", "max_storage=20000"), False)


def test_long_sums_are_exact() -> None:
    """All terms of one sign and as large as they can be: more than fp32 counts."""
    case = Case(1, 200, 16, 3, (3, 3), bias=False)
    weight = Weight(case, False)
    weight.q.fill_(-128)
    x = torch.full((1, 200, 3, 3), 127, dtype=torch.int8)
    x[0, 7, 1, 1] = 126
    program = OneCall()
    weight.scale.fill_(1.0)
    program.call(
        "conv2d_q8ta_q8csw", [program.input(torch.int8, x.shape), *weight.arguments(program, 0), 1.0, -128],
        torch.float32, [1, 16, 1, 1],
    )  # fmt: skip
    want = (x.long() + 128).sum().item() * -128
    assert pumice.load(program.bytes())(x).flatten().tolist() == [float(torch.tensor(want, dtype=torch.float32))] * 16
