# SPDX-License-Identifier: Apache-2.0
"""Dequantization bit for bit as eager PyTorch has it."""

from __future__ import annotations

import pytest
import torch
from support.quantize_cases import BLOCKS, DTYPES, EXTREME, FLOATS, SCALES, parameters
from support.quantized import Apply, check_bits, limits

ao, qd = torch.ops.torchao, torch.ops.quantized_decomposed


def integers(*shape: int, dtype: torch.dtype) -> torch.Tensor:
    low, high = limits(dtype)
    x = torch.randint(low, high + 1, shape, generator=torch.Generator().manual_seed(1), dtype=torch.int64)
    x.view(-1)[:2] = torch.tensor([low, high])[: x.numel()]
    return x.to(dtype)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize(("shape", "block"), BLOCKS, ids=str)
def test_blocks(shape, block, dtype) -> None:
    scale, zero = parameters(shape, block, dtype)
    x = integers(*shape, dtype=dtype)
    function = lambda x, s, z: [  # noqa: E731
        ao.dequantize_affine(x, block, s, z, dtype, output_dtype=kind) for kind in FLOATS
    ]
    check_bits(Apply(function), x, scale, zero, expect_ops={"dequantize": 2})


@pytest.mark.parametrize("scale_dtype", FLOATS, ids=str)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_byte_and_scale(dtype, scale_dtype) -> None:
    """All 256 values of 8 bits, with scales from denormals to infinity."""
    scale = torch.tensor([*SCALES, *EXTREME]).to(scale_dtype)
    x = integers(len(scale), 256, dtype=dtype)
    if dtype is not torch.int32:
        x[:] = torch.arange(*limits(dtype)[:1], limits(dtype)[1] + 1).to(dtype)

    def function(x: torch.Tensor, scale: torch.Tensor) -> list[torch.Tensor]:
        results = []
        for zero in (0, -7, 127, -(2**31)):
            z = torch.full(scale.shape, zero, dtype=torch.int32)
            results += [ao.dequantize_affine(x, [1, 256], scale, z, dtype, output_dtype=kind) for kind in FLOATS]
            results += [
                qd.dequantize_per_channel(x, scale, z.long(), 0, 0, 9, dtype, out_dtype=kind) for kind in FLOATS
            ]
        return results

    check_bits(Apply(function), x, scale, expect_ops={"dequantize": 16})


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_quantized_decomposed(dtype) -> None:
    x, bits = integers(6, 8, 10, dtype=dtype), 8

    def function(x: torch.Tensor, s: torch.Tensor, z: torch.Tensor) -> list[torch.Tensor]:
        results = []
        for kind in FLOATS:
            for d in range(3):
                n = x.shape[d]
                results.append(qd.dequantize_per_channel(x, s[:n], z[:n], d, 0, bits, dtype, out_dtype=kind))
            results += [
                qd.dequantize_per_tensor(x, 0.1, 5, 0, bits, dtype, out_dtype=kind),
                qd.dequantize_per_tensor(x, 1 / 3, -3, 0, bits, dtype),
                qd.dequantize_per_channel(x, s[:6], None, 0, 0, bits, dtype, out_dtype=kind),
                qd.dequantize_per_channel(x, s[:6], z[:6].float() * 0.3, 0, 0, bits, dtype, out_dtype=kind),
                qd.dequantize_per_channel_group(x.view(6, 80), s.view(6, 2), z.view(6, 2), 0, bits, dtype, 40, kind),
                qd.dequantize_per_channel_group(x.view(6, 80), s.view(6, 2), None, 0, bits, dtype, 40, kind),
            ]
        return results

    check_bits(
        Apply(function), x, torch.rand(12) * 0.1 + 1e-3, torch.arange(12) * 5 - 30, expect_ops={"dequantize": 17}
    )


def test_there_and_back() -> None:
    """Parameters from the live tensor, per token (fp64 ones) and for the whole of it."""

    def function(x: torch.Tensor) -> list[torch.Tensor]:
        scale, zero = qd.choose_qparams_per_token_asymmetric(x, torch.int8)
        token = qd.quantize_per_token(x, scale, zero, -128, 127, torch.int8)
        s, z = qd.choose_qparams.tensor(x, 0, 255, 1e-7, torch.uint8)
        whole = qd.quantize_per_tensor.tensor(x, s, z, 0, 255, torch.uint8)
        return [
            *(qd.dequantize_per_token(token, scale, zero, -128, 127, torch.int8, kind) for kind in FLOATS),
            *(qd.dequantize_per_tensor.tensor(whole, s, z, 0, 255, torch.uint8, out_dtype=kind) for kind in FLOATS),
        ]

    x = torch.randn(7, 33) * 3
    for kind in FLOATS:
        check_bits(Apply(function), x.to(kind), expect_ops={"dequantize": 4, "quantize": 2, "choose_qparams": 2})


def test_refused(e2e) -> None:
    x = torch.zeros(4, 4, dtype=torch.int8)
    bytes_ = Apply(
        lambda x, z: qd.dequantize_per_channel(x, torch.ones(4), z, 0, -128, 127, torch.int8),
        torch.ones(4).to(torch.int8),
    )
    e2e.refuses(bytes_, x, match="PyTorch subtracts them in 8 bits")
