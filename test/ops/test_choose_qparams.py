# SPDX-License-Identifier: Apache-2.0
"""Scales and zero points of live tensors, bit for bit as eager PyTorch has them."""

from __future__ import annotations

import pytest
import torch
from support.quantize_cases import BLOCKS, FLOATS, INF, NAN
from support.quantized import Apply, all_halves, check_bits

ao, qd = torch.ops.torchao, torch.ops.quantized_decomposed
MAPPINGS = ["ASYMMETRIC", "SYMMETRIC", "SYMMETRIC_NO_CLIPPING_ERR"]
RANGES = [
    (torch.int8, -128, 127),
    (torch.int8, -8, 7),
    (torch.int8, -127, 127),
    (torch.uint8, 0, 255),
    (torch.uint8, 3, 99),
]


def tokens(dtype: torch.dtype) -> torch.Tensor:
    """Rows of every size, of one sign, constant, zero, denormal, and with what is special."""
    torch.manual_seed(0)
    x = torch.randn(2000, 9) * torch.logspace(-42, 38, 2000)[:, None]
    x[:300] = x[:300].abs()
    x[300:600] = -x[300:600].abs()
    x[600:700] = x[600:700, :1]
    halves = all_halves()
    pairs = torch.stack([halves[torch.randperm(65536)] for _ in range(9)], 1)[:4000].float()
    rows = [
        [0.0],
        [-0.0],
        [INF],
        [-INF],
        [NAN],
        [1e-40],
        [-1e-40],
        [2.0**-126],
        [-(2.0**-126)],
        [3.4e38],
        [6e4],
        [-6e4],
    ]
    special = torch.tensor([[*row, *[0.0] * 7, 1.0][:9] for row in rows])
    special = torch.cat([special, special[:, :1].expand(-1, 9)])
    both = torch.tensor([[INF, -INF, *[0.0] * 7], [3e38, -3e38, *[1.0] * 7], [65504, -65504, *[1.0] * 7]])
    return torch.cat([x, pairs, special, both]).to(dtype)


@pytest.mark.parametrize("mapping", MAPPINGS)
@pytest.mark.parametrize("kind", FLOATS, ids=str)
def test_affine(kind, mapping) -> None:
    x = tokens(kind)

    def function(x: torch.Tensor) -> list[torch.Tensor]:
        results = []
        for dtype, low, high in RANGES:
            for zero in (torch.int8, torch.int32) if high < 128 else (torch.uint8, torch.int64):
                results += ao.choose_qparams_affine(x, mapping, [1, 9], dtype, low, high, None, None, zero)
        for eps, scale in ((1.19e-07, torch.float32), (1e-5, torch.float16), (0.01, None)):
            results += ao.choose_qparams_affine(
                x, mapping, [1, 9], torch.int8, -128, 127, eps, scale, torch.int32, True
            )
        return results

    check_bits(Apply(function), x, expect_ops={"choose_qparams": 2 * len(RANGES) + 3})


@pytest.mark.parametrize(("shape", "block"), BLOCKS, ids=str)
def test_blocks(shape, block) -> None:
    function = lambda x: [  # noqa: E731
        *ao.choose_qparams_affine(x, "ASYMMETRIC", block, torch.int8),
        *ao.choose_qparams_affine(x, "ASYMMETRIC", block, torch.int8, keepdim=True),
    ]
    torch.manual_seed(0)
    for kind in FLOATS:
        check_bits(Apply(function), torch.randn(shape).to(kind), expect_ops={"choose_qparams": 2})


@pytest.mark.parametrize("kind", FLOATS, ids=str)
def test_quantized_decomposed(kind) -> None:
    x = tokens(kind)
    check_bits(
        Apply(lambda x: qd.choose_qparams_per_token_asymmetric(x, torch.int8)), x, expect_ops={"choose_qparams": 1}
    )
    per_token = Apply(lambda x: qd.choose_qparams_per_token(x, torch.int8)[0])
    check_bits(per_token, x, expect_ops={"choose_qparams": 1})

    def tensors(x: torch.Tensor) -> list[torch.Tensor]:
        results = [*qd.choose_qparams.tensor(x, -128, 127, 2.0**-12, torch.int8)]
        results += qd.choose_qparams.tensor(x, 0, 255, 1e-5, torch.uint8)
        results += qd.choose_qparams_symmetric.tensor(x, -127, 127, 1.19e-07, torch.int8)
        results += qd.choose_qparams_symmetric.tensor(x, 0, 255, 1e-7, torch.uint8)
        return results

    whole = Apply(tensors)
    rows = [x[i] for i in (0, 1, 50, 200, 299, 400, 599, 601, *range(2000, 2030, 3), *range(-27, 0))]
    big = torch.cat([torch.randn(100_000), torch.tensor([7.5, -11.0]), torch.randn(3)]).to(kind)
    n = torch.export.Dim("n", max=1 << 20)
    check_bits(
        whole, torch.randn(5).to(kind), expect_ops={"choose_qparams": 4}, dynamic_shapes=(({0: n},),),
        runs=[(row,) for row in (*rows, big, torch.zeros(3).to(kind))],
    )  # fmt: skip


def test_dynamic_tokens() -> None:
    function = lambda x: ao.choose_qparams_affine(x, "ASYMMETRIC", [1, 1, 20], torch.int8)  # noqa: E731
    n = torch.export.Dim("n", max=4096)
    runs = [(torch.randn(2, m, 20),) for m in (1, 4000, 0, 9)]
    check_bits(
        Apply(function), torch.randn(2, 3, 20), expect_ops={"choose_qparams": 1}, dynamic_shapes=(({1: n},),), runs=runs
    )


def test_refused(e2e) -> None:
    half = Apply(lambda x: qd.choose_qparams_symmetric.tensor(x, 0, 127, 1e-7, torch.int8))
    e2e.refuses(half, torch.randn(4), match="does not put zero in the middle")
