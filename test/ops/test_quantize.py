# SPDX-License-Identifier: Apache-2.0
"""Quantization bit for bit as eager PyTorch has it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from support.quantize_cases import BLOCKS, DTYPES, EXTREME, FLOATS, INF, NAN, SCALES, parameters
from support.quantized import Apply, all_halves, check_bits, limits

import pumice

ao, qd = torch.ops.torchao, torch.ops.quantized_decomposed


def floats(scale: float) -> torch.Tensor:
    """Every exponent, ties and their neighbours for a scale, both saturations and what is special."""
    bits = torch.arange(0, 2**32, 52_361, dtype=torch.int64)
    patterns = bits.to(torch.uint32).view(torch.float32)
    ties = (torch.arange(-1000, 1000) + 0.5) * scale
    ties = torch.cat([ties, torch.nextafter(ties, ties * 2), torch.nextafter(ties, ties * 0)])
    special = torch.tensor([0.0, -0.0, INF, -INF, NAN, 1e30, -1e30, 1e-40, -1e-40, 1.1754942e-38, 2.0**31, -(2.0**31)])
    return torch.cat([patterns, ties, special])


IN_TURN = {torch.int8: (0, -7, 127, -128), torch.uint8: (0, 128, 255), torch.int32: (0, 100, -5)}


def affine(dtype: torch.dtype, low: int, high: int, zeros: tuple[int, ...]) -> Callable[..., Any]:
    """Every row of x with every one of `zeros`, a scale a row."""

    def function(x: torch.Tensor, scale: torch.Tensor) -> list[torch.Tensor]:
        block = [1, x.shape[1]]
        each = [torch.full(scale.shape, zero, dtype=torch.int32) for zero in zeros]
        return [ao.quantize_affine(x, block, scale, zero, dtype, low, high) for zero in each]

    return function


@pytest.mark.parametrize("half_scale", [False, True], ids=["f32 scale", "f16 scale"])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_half(e2e, dtype, half_scale) -> None:
    """All 65,536 of them: ties, both saturations, NaN, infinities, denormals."""
    low, high = limits(dtype)
    if half_scale and dtype is torch.int32:
        low, high = -30000, 65504  # what PyTorch can compare fp16 with
    scales = torch.tensor(SCALES).to(torch.float16 if half_scale else torch.float32)
    module = Apply(affine(dtype, low, high, IN_TURN[dtype]), scales)
    e2e.check(
        module, all_halves().repeat(len(scales), 1), reference="eager", expect_ops={"quantize": len(IN_TURN[dtype])}
    )


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_floats(e2e, dtype) -> None:
    scales = [*SCALES, *EXTREME]
    x = torch.stack([floats(scale) for scale in scales])
    module = Apply(affine(dtype, *limits(dtype), IN_TURN[dtype]), torch.tensor(scales))
    e2e.check(module, x, reference="eager", expect_ops={"quantize": len(IN_TURN[dtype])}, all_features=True)


def check(module: torch.nn.Module, *inputs: torch.Tensor, **more: Any) -> pumice.Program:
    return check_bits(module, *inputs, expect_ops={"quantize": 1}, **more)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize(("shape", "block"), BLOCKS, ids=str)
def test_blocks(shape, block, dtype) -> None:
    scale, zero = parameters(shape, block, dtype)
    x = torch.randn(shape) * 5
    low, high = limits(dtype)
    for kind in FLOATS:
        function = lambda x, s, z: ao.quantize_affine(x, block, s, z, dtype, low, high)  # noqa: E731
        check(Apply(function), x.to(kind), scale, zero)


@pytest.mark.parametrize("zero", [torch.int8, torch.uint8, torch.int32, torch.int64, torch.float32, torch.float16])
def test_dtypes_of_parameters(zero) -> None:
    x, scale = torch.randn(9, 30), torch.rand(9) + 0.01
    for kind in FLOATS:
        point = torch.arange(9).to(zero)
        function = lambda x, s, z: ao.quantize_affine(x, [1, 30], s, z, torch.int8, -100, 90)  # noqa: E731
        check(Apply(function), x, scale.to(kind), point)


@pytest.mark.parametrize("kind", FLOATS, ids=str)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_quantized_decomposed(kind, dtype) -> None:
    low, high = (3, 250) if dtype is torch.uint8 else (-120, 100)
    x = (torch.randn(6, 8, 10) * 3).to(kind)
    zeros = lambda n: torch.arange(n) % 7  # noqa: E731
    many = Apply(
        lambda x, s, z: [
            qd.quantize_per_tensor(x, 0.1, 5, low, high, dtype),
            qd.quantize_per_tensor(x, 0.030000000000000001, 128, low, high, dtype),
            *(qd.quantize_per_channel(x, s[: x.shape[d]], z[: x.shape[d]], d, low, high, dtype) for d in range(3)),
            qd.quantize_per_token(x, s.repeat(5)[:48].view(6, 8, 1), z.repeat(5)[:48].view(6, 8, 1), low, high, dtype),
            qd.quantize_per_channel_group(x.view(6, 80), s.view(6, 2), z.view(6, 2), low, high, dtype, 40),
        ]
    )
    check_bits(many, x, torch.rand(12) * 0.1 + 1e-3, zeros(12), expect_ops={"quantize": 7})


def test_a_python_scale_is_inverted_in_fp64() -> None:
    """1 / 0.03 in fp64, then rounded, is not 1 / fp32(0.03)."""
    scales = [0.1, 0.03, 1 / 3, 0.007, 1e-5, 0.9999999, 123.456]
    x = torch.cat([floats(scale) for scale in scales[:3]])
    many = Apply(lambda x: [qd.quantize_per_tensor(x, scale, 3, -128, 127, torch.int8) for scale in scales])
    check_bits(many, x, expect_ops={"quantize": len(scales)})


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_fp64_scales(dtype) -> None:
    """What choose_qparams_per_token_asymmetric makes is fp64; the sum with the zero point is rounded, ties matter."""
    low, high = limits(dtype)

    def function(x: torch.Tensor) -> list[torch.Tensor]:
        scale, zero = qd.choose_qparams_per_token_asymmetric(x, torch.int8)
        exact, none = qd.choose_qparams_per_token(x, torch.int8)
        return [
            qd.quantize_per_token(x, scale, zero, low, high, dtype),
            qd.quantize_per_token(x, exact, none, low, high, dtype),
        ]

    torch.manual_seed(0)
    x = torch.randn(300, 257) * torch.logspace(-6, 6, 300)[:, None]
    x[:100] = torch.randint(-255, 256, (100, 257)) * 0.5 * torch.logspace(-3, 3, 100)[:, None]  # ties
    x[5], x[6, 3], x[7, 3], x[8, 3] = 0.0, INF, -INF, NAN
    x[9], x[10] = torch.linspace(0, 255, 257).round() / 2, torch.linspace(-1, 1, 257) * 3e38
    check_bits(Apply(function), x, expect_ops={"quantize": 2, "choose_qparams": 2})
    check_bits(Apply(function), x.half(), expect_ops={"quantize": 2, "choose_qparams": 2})


def test_dynamic_sizes() -> None:
    def function(x: torch.Tensor, scale: torch.Tensor, zero: torch.Tensor) -> list[torch.Tensor]:
        return [
            ao.quantize_affine(x, [1, 20], scale, zero, torch.int8, -128, 127),
            qd.quantize_per_tensor(x, 0.1, 3, -128, 127, torch.int8),
        ]

    inputs = lambda n: (torch.randn(n, 20), torch.rand(n) + 0.01, torch.arange(n, dtype=torch.int8))  # noqa: E731
    n = torch.export.Dim("n", max=4096)
    shapes = (({0: n}, {0: n}, {0: n}),)
    more = [inputs(1), inputs(4001), inputs(5)]
    program = check_bits(Apply(function), *inputs(7), expect_ops={"quantize": 2}, dynamic_shapes=shapes, runs=more)
    assert [list(t.shape) for t in pumice.load(bytes(program))(*inputs(0))] == [[0, 20], [0, 20]]  # PyTorch fails here


def test_refused(e2e) -> None:
    x = torch.randn(4, 4)
    e2e.refuses(
        Apply(lambda x: qd.quantize_per_tensor(x.long().float(), 0.1, 3, 0, 9, torch.int16)), x, match="i16|int16"
    )
    scale, zero = torch.rand(4, 1, dtype=torch.float64), torch.zeros(4, 1)
    module = Apply(lambda x, s, z: qd.quantize_per_token(x, s, z, -128, 127, torch.int8), scale, zero)
    e2e.refuses(module, x, match="float64")
