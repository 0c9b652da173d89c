# SPDX-License-Identifier: Apache-2.0
"""Weights, scales and zero points that are wrong, extreme or empty, at export and in a file: a typed error, or the
exact result. W10, larger than a binding, is test/ops/test_split.py; W12 has no case, since a file holds no sums."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from support.one_call import OneCall
from support.quantized import Apply, quantized
from torch.nn import functional as F

import pumice
from pumice.format import ir
from pumice.format.constants import pack

pytestmark = pytest.mark.every  # what strangers send: each case in every run

ao, qd = torch.ops.torchao, torch.ops.quantized_decomposed
INF, NAN = float("inf"), float("nan")


def file(
    q: torch.Tensor, scale: torch.Tensor, zero: torch.Tensor | None, group: int, bias=None, bits: int = 4
) -> bytes:
    """linear_q4gsw or linear_q8gsw of [m, K] by itself."""
    program = OneCall()
    n, k = q.shape
    args = [program.input(torch.float32, ["m", k]), program.constant(q, ir.DType.i4 if bits == 4 else None)]
    args += [program.constant(scale), program.constant(zero), program.constant(bias), group, 0, None]
    program.call(f"linear_q{bits}gsw", args, torch.float32, ["m", n])
    return program.bytes()


def matrix(n: int, k: int, bits: int = 4) -> torch.Tensor:
    most = 1 << (bits - 1)
    generator = torch.Generator().manual_seed(n * k)
    return torch.randint(-most, most, (n, k), generator=generator).to(torch.int8)


def refused(data: bytes, code: str, match: str) -> None:
    with pytest.raises(pumice.InvalidFileError, match=match) as caught:
        pumice.load(data)
    assert caught.value.code == code and caught.value.path


@pytest.mark.parametrize(
    ("k", "group", "groups"),
    [(64, 0, 1), (64, 1, 64), (64, 65, 1), (64, 3, 21), (64, 24, 2), (64, 2**31, 1), (64, -4, 1), (63, 21, 3)],
)
def test_groups(k, group, groups) -> None:
    """W01"""
    refused(file(matrix(8, k), torch.ones(8, groups), None, group), "BadQuantParams", "groups of")


@pytest.mark.parametrize("k", [1, 3, 61, 127])
def test_an_odd_row_is_one_group(k) -> None:
    """W01: exact, tail included."""
    q, x = matrix(5, k), torch.randint(-9, 9, (3, k)).float()
    assert torch.equal(pumice.load(file(q, torch.ones(5, 1), None, k))(x), x @ q.float().T)


@pytest.mark.parametrize("change", [-1, 1])
def test_bytes(change) -> None:
    """W02"""
    program = OneCall()
    x, weight = program.input(torch.float32, ["m", 64]), program.constant(matrix(8, 64), ir.DType.i4)
    stored = program.program.constants[0]
    data = stored.data()
    program.program.constants[0] = ir.Constant(
        stored.key, len(data) + change, lambda: (data + b"\0")[: len(data) + change]
    )
    program.call(
        "linear_q4gsw",
        [x, weight, program.constant(torch.ones(8, 2)), None, None, 32, 0, None],
        torch.float32,
        ["m", 8],
    )
    refused(program.bytes(), "WeightsMismatch", str(len(data) + change))


@pytest.mark.parametrize("shape", [(8, 1), (8, 3), (7, 2), (16,), (2, 8)])
def test_counts(shape) -> None:
    """W03"""
    q, scale = matrix(8, 64), torch.ones(8, 2)
    refused(file(q, torch.ones(shape), None, 32), "BadQuantParams", "scales must be")
    refused(file(q, scale, torch.zeros(shape, dtype=torch.int8), 32), "BadQuantParams", "zero points must be")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
@pytest.mark.parametrize("value", [NAN, -NAN, INF, -INF, -0.5, -1e-7])
def test_scales(value, dtype) -> None:
    """W04: named with the index, in a file and at export."""
    scale = torch.ones(8, 2).to(dtype)
    scale[3, 1] = value
    text = "nan" if value != value else "inf" if abs(value) == INF else f"{float(scale[3, 1]):g}"
    refused(file(matrix(8, 64), scale, None, 32), "BadQuantParams", f"scale 7 of the weight is -?{text.lstrip('-')}")
    module = quantized(torch.nn.Linear(64, 8).to(dtype), 4, 32)
    module.weight.scale.copy_(scale)
    program = pumice.export(module, (torch.randn(2, 64).to(dtype),))
    with pytest.raises(pumice.UnsupportedError, match=r"the scale \[3, 1\] of the weight") as caught:
        bytes(program)
    assert caught.value.code == "BadQuantParams"


@pytest.mark.parametrize("value", [0.0, -0.0, 1e-40, 2.0**-126])
def test_small_scales(value) -> None:
    """W05: compared with fp64; scales below 2^-126 may count as zero."""
    q, scale, x = matrix(8, 64), torch.ones(8, 2), torch.randn(3, 64)
    scale[3] = value
    got = pumice.load(file(q, scale, None, 32))(x)
    want = x.double() @ (q.double() * scale.double().repeat_interleave(32, 1)).T
    torch.testing.assert_close(got.double(), want, rtol=1e-5, atol=1e-4)
    assert got[:, 3].abs().max() <= 1e-30


@pytest.mark.parametrize("zero", [128.0, -129.0, 0.5, NAN])
def test_zero_points(zero) -> None:
    """W06: whole numbers that int8 holds."""
    weight, scale = matrix(8, 64, 8), torch.rand(8)
    points = torch.full((8,), zero)
    function = lambda x, w, s, z: F.linear(x, qd.dequantize_per_channel(w, s, z, 0, -128, 127, torch.int8))  # noqa: E731
    program = pumice.export(Apply(function, weight, scale, points), (torch.randn(2, 64),))
    with pytest.raises(pumice.UnsupportedError, match="zero points of the weight") as caught:
        bytes(program)
    assert caught.value.code == "BadQuantParams"


def test_zero_points_that_wrap_in_pytorch() -> None:
    """W06: PyTorch subtracts int8 in 8 bits there, so only differences that fit 8 bits are equal."""
    scale, x = torch.rand(8), torch.randn(2, 64)
    function = lambda x, w, s, z: F.linear(x, qd.dequantize_per_channel(w, s, z, 0, -128, 127, torch.int8))  # noqa: E731
    for low, point, fits in ((-100, 27, True), (-100, 29, False)):
        weight = matrix(8, 64).clamp(-3, 3)
        weight[2, 5] = low
        module = Apply(function, weight, scale, torch.full((8,), point, dtype=torch.int8))
        program = pumice.export(module, (x,))
        if fits:
            torch.testing.assert_close(pumice.load(bytes(program))(x), module(x), rtol=1e-5, atol=1e-3)
        else:
            with pytest.raises(pumice.UnsupportedError, match="differ by more than 8 bits hold"):
                bytes(program)


def test_values_beyond_int4() -> None:
    """W06: int8 data that a graph calls int4."""
    module = quantized(torch.nn.Linear(64, 8), 4, 32)
    module.weight.qdata[2, 3] = 9
    with pytest.raises(pumice.UnsupportedError, match=r"of integers -8\.\.7 holds .*9"):
        bytes(pumice.export(module, (torch.randn(2, 64),)))


def test_garbage_in_padding_nibbles() -> None:
    """W07"""
    q, x = matrix(8, 33), torch.randn(3, 33)
    data = file(q, torch.ones(8, 1), None, 33)
    rows = np.frombuffer(pack(q.numpy(), ir.DType.i4), np.uint8).reshape(8, 17).copy()
    rows[:, -1] |= 0xA0
    program = OneCall()
    args = [program.input(torch.float32, ["m", 33]), program.constant(q, ir.DType.i4)]
    stored = program.program.constants[0]
    program.program.constants[0] = ir.Constant(stored.key, stored.size, lambda: rows.tobytes())
    args += [program.constant(torch.ones(8, 1)), None, None, 33, 0, None]
    program.call("linear_q4gsw", args, torch.float32, ["m", 8])
    assert program.bytes() != data
    assert torch.equal(pumice.load(program.bytes())(x), pumice.load(data)(x))


@pytest.mark.parametrize("k", [131_072, 131_136])
@pytest.mark.parametrize("rows", [1, 9])
def test_the_longest_rows_of_the_largest_integers(rows, k) -> None:
    """W08: sums of -128 * -128; with 131,072 columns the sum does not fit 32 bits."""
    q, scale = torch.full((5, k), -128, dtype=torch.int8), torch.full((5, 1), 2.0**-20)
    program = OneCall()
    args = [program.input(torch.float32, ["m", k]), program.constant(q), program.constant(scale), None, None]
    program.call("linear_q8ta_q8csw", [*args, 0, None, 1.0, 0, -128, 127], torch.float32, ["m", 5])
    got = pumice.load(program.bytes())(torch.full((rows, k), -128.0))
    assert torch.allclose(got, torch.full((rows, 5), 16384.0 * k * 2.0**-20), rtol=1e-5)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(("n", "k"), [(0, 5), (5, 0), (0, 0)])
def test_empty_weights(n, k, bias) -> None:
    """W09"""
    module = torch.nn.Sequential(torch.nn.Linear(k, n, bias=bias), torch.nn.ReLU()).eval()
    if bias and n:
        module[0].bias.data = torch.arange(n) - 2.0
    x = torch.randn(3, k)
    assert torch.equal(pumice.load(bytes(pumice.export(module, (x,))))(x), module(x))


@pytest.mark.parametrize("count", [2, 8])
def test_one_constant_in_many_calls(count) -> None:
    """W11: a tied weight is stored once, and all its users are right."""
    layer = quantized(torch.nn.Linear(64, 64, bias=False), 4, 32)
    module = torch.nn.Sequential(*[step for _ in range(count) for step in (layer, torch.nn.LayerNorm(64))]).eval()
    x = torch.randn(3, 64)
    program = pumice.export(module, (x,))
    assert sum(constant.size for constant in program.ir.constants if constant.key.endswith(":i4")) == 64 * 32
    torch.testing.assert_close(pumice.load(bytes(program))(x), module(x), rtol=1e-4, atol=1e-4)


def test_bias() -> None:
    """W13"""
    q, scale, x = matrix(8, 64), torch.ones(8, 2), torch.randn(3, 64)
    for length in (7, 9, 1, 0):
        refused(file(q, scale, None, 32, torch.zeros(length)), "BadGraph", "bias")
    bias = torch.zeros(8)
    bias[2], bias[5] = NAN, INF
    got = pumice.load(file(q, scale, None, 32, bias))(x)
    assert got[:, 2].isnan().all() and got[:, 5].isinf().all() and got[:, [0, 1, 3, 4, 6, 7]].isfinite().all()
