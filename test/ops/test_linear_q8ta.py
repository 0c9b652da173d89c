# SPDX-License-Identifier: Apache-2.0
"""Linears with x in 8-bit integers of a constant scale, every kernel forced, against fp64 of the same integers."""

from __future__ import annotations

import pytest
import torch
from support.int8 import FLOATS, INTEGERS, MATRICES, Layer, Weight, check_integers, roundings
from support.one_call import OneCall
from support.sums import product

import pumice

ALL = [*FLOATS, *INTEGERS]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
@pytest.mark.parametrize(("low", "high", "zero"), [(-128, 127, 0), (-128, 127, -100), (0, 255, 37), (-127, 127, 5)])
def test_floats(monkeypatch, low, high, zero, dtype) -> None:
    weight = Weight.random(37, 130, None, 8, zero=zero != 0)
    layer = Layer(weight, torch.randn(37).to(dtype), 1, True, dtype, low=low, high=high, static=(0.021, zero))
    layer.check_rows(monkeypatch, [*ALL, *(MATRICES if dtype is torch.float32 else [])], (1, 2, 9, 70))


def test_values_beyond_the_range(monkeypatch) -> None:
    """NaN becomes the integer 0, infinities the ends of the range, as in PyTorch."""

    def make(m: int, k: int) -> torch.Tensor:
        x = torch.randn(m, k) * 100
        x[0, :3] = torch.tensor([float("nan"), float("inf"), -float("inf")])
        return x

    Layer(Weight.random(20, 64, None, 8), static=(0.1, 3)).check_rows(monkeypatch, ALL, (1, 9), make)


LIMITS = {torch.int8: (-128, 127), torch.uint8: (0, 255)}


def integers(m: int, k: int, dtype: torch.dtype) -> torch.Tensor:
    return torch.randint(LIMITS[dtype][0], LIMITS[dtype][1] + 1, (m, k)).to(dtype)


@pytest.mark.parametrize("x_dtype", LIMITS, ids=str)
@pytest.mark.parametrize("out_dtype", LIMITS, ids=str)
@pytest.mark.parametrize(("n", "k"), [(37, 130), (64, 256), (16, 3)])
def test_integers(monkeypatch, n, k, x_dtype, out_dtype) -> None:
    weight, bias = Weight.random(n, k, None, 8, zero=k == 130), torch.randn(n) * 10
    x_scale, x_zero, out_zero = 0.02, 17, 100
    out_scale, (low, high) = 0.05 * k**0.5, LIMITS[out_dtype]
    for act in (0, 1):
        program = OneCall()
        args = [
            program.input(x_dtype, ["m", k]),
            *weight.constants(program),
            program.constant(bias),
            act,
            x_scale,
            x_zero,
        ]
        program.call("q8ta_linear", [*args, out_scale, out_zero, low, high - 5], out_dtype, ["m", n])
        data = program.bytes()
        for kernel in ("", *ALL, *(MATRICES[:1] if k == 130 and act else [])):
            monkeypatch.setenv("PUMICE_KERNEL", kernel)
            session = pumice.load(data)
            for m in (1, 5, 70):
                x = integers(m, k, x_dtype)
                sums = product((x.double() - x_zero) * x_scale, weight.real().T).plus(bias)
                sums = sums.then(torch.relu) if act else sums
                check_integers(session(x), sums, roundings(kernel, weight), out_scale, out_zero, low, high - 5)
            assert session(x[:0]).shape == (0, n)


def test_extreme_scales() -> None:
    """Their reciprocals are no normal numbers."""
    weight = Weight.random(20, 64, None, 8)
    x = integers(5, 64, torch.int8)
    real = x.double() * 0.02 @ weight.real().T
    for scale, want in ((3e38, torch.full((5, 20), 7.0)), (1e-40, torch.where(real == 0, 7, real.sign() * 200))):
        program = OneCall()
        args = [program.input(torch.int8, ["m", 64]), *weight.constants(program), None, 0, 0.02, 0, scale, 7, -128, 127]
        program.call("q8ta_linear", args, torch.int8, ["m", 20])
        assert torch.equal(pumice.load(program.bytes())(x).double(), want.double().clamp(-128, 127))


def check_scales_of_tokens(monkeypatch, weight: Weight, zero: bool, kernels, counts, features: str = "") -> None:
    """A scale and a zero point for each row of x and of the output, with each of the kernels that can run."""
    (n, k), bias = weight.q.shape, torch.randn(weight.q.shape[0])
    program = OneCall()
    rows = [program.input(torch.float32, ["m"]), program.input(torch.int32 if zero else torch.int8, ["m"])]
    out_rows = [program.input(torch.float32, ["m"]), program.input(torch.int8, ["m"])]
    x_value = program.input(torch.int8, ["m", k])
    args = [x_value, *rows, *weight.constants(program), program.constant(bias), weight.group, *out_rows]
    program.call("linear_qta8a_qga4w_qta8o", args, torch.int8, ["m", n])
    data = program.bytes()
    for kernel in kernels:
        if Layer(weight).unsupported_reason(kernel):
            continue
        monkeypatch.setenv("PUMICE_KERNEL", kernel)
        session = pumice.load(data, features=features)
        for m in counts:
            x, x_scale, out_scale = integers(m, k, torch.int8), torch.rand(m) * 0.05 + 0.001, torch.rand(m) * 0.3 + 0.02
            x_zero, out_zero = (torch.randint(-128, 128, (m,)).to(torch.int8) for _ in range(2))
            got = session(x_scale, x_zero.int() if zero else x_zero, out_scale, out_zero, x)
            whole = (x.double() - x_zero[:, None].double()) * x_scale[:, None].double()
            sums = product(whole, weight.real().T).plus(bias)
            scale, out_zeros = out_scale[:, None].double(), out_zero[:, None].double()
            check_integers(got, sums, roundings(kernel, weight), scale, out_zeros, -128, 127)


@pytest.mark.parametrize("zero", [False, True], ids=["symmetric", "affine"])
@pytest.mark.parametrize(("n", "k", "group"), [(37, 96, 32), (64, 256, 128), (20, 48, 24), (16, 130, None)])
def test_a_scale_for_each_token(monkeypatch, n, k, group, zero) -> None:
    kernels = ("", *ALL, *(MATRICES if group == 32 and zero else []))
    check_scales_of_tokens(monkeypatch, Weight.random(n, k, group, 4, zero), zero, kernels, (1, 5, 70))


def test_a_scale_for_each_token_of_a_binding(monkeypatch) -> None:
    """An output larger than a binding: its rows' scales are bound with them."""
    weight = Weight.random(256, 64, 32, 4, True)
    kernels = ("dot_tile32x64", "dotw4", *MATRICES[1:2])
    check_scales_of_tokens(monkeypatch, weight, True, kernels, (70,), "max_storage=8192")


def test_one_activation_is_quantized_once() -> None:
    """Three projections of one x: one kernel makes its integers."""
    program = OneCall()
    x = program.input(torch.float32, ["m", 64])
    weights = [Weight.random(n, 64, 32, 4) for n in (16, 17, 18)]
    for weight in weights:
        tail = [None, 32, 0, None, 0, -128, 127, 1e-7, 1]
        program.call(
            "linear_dq8ca_q4gsw", [x, *weight.constants(program), *tail], torch.float32, ["m", weight.q.shape[0]]
        )
    session = pumice.load(program.bytes())
    value = torch.randn(40, 64)
    for weight, got in zip(weights, session(value), strict=True):
        Layer(weight, eps=1e-7).check(got, value)
    kernels = [row.kernel for row in session.profile(value)]
    assert sum("quantize" in kernel for kernel in kernels) == 1, kernels


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"mapping": 3}, "mapping 3 is not 0, 1 or 2"),
        ({"low": -129}, "-129..127 is not within"),
        ({"low": 5, "high": 5}, "5..5 is not within"),
        ({"eps": -1.0}, "eps is -1"),
        ({"per_token": 3}, "per_token is 3, not 0, 1 or 2"),
        ({"static": (0.0, 0)}, "the scale 0 is not positive"),
        ({"static": (0.1, 128)}, "the zero point 128 is not in -128..127"),
    ],
)
def test_bad_parameters(change, match) -> None:
    layer = Layer(Weight.random(16, 64, None, 8), **change)
    with pytest.raises(pumice.InvalidFileError, match=match):
        pumice.load(layer.program())
