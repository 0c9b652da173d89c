# SPDX-License-Identifier: Apache-2.0
"""Scales and masks of attention written by hand, inside of its softmax: against the single operators, bit for bit, and
against eager PyTorch."""

from __future__ import annotations

import math

import pytest
import torch
from support.unfused import CHAIN, Function

import pumice

PATTERN = "masked_softmax"
INF = float("inf")


def both(function, inputs, operators=None, *, runs=(), dynamic_shapes=None) -> None:
    """Runs a function with the pattern and without."""
    module, results = Function(function), []
    for without in ((CHAIN,), (CHAIN, PATTERN)):
        program = pumice.export(module, inputs, dynamic_shapes=dynamic_shapes, options={"without_fusion": without})
        if len(without) == 1:
            assert program.report.operators == (operators or {PATTERN: 1}), program.report.operators
        session = pumice.load(bytes(program))
        results.append([session(*run) for run in (inputs, *runs)])
    for run, ours, single in zip((inputs, *runs), *results, strict=True):
        assert torch.equal(ours.nan_to_num(-1.0), single.nan_to_num(-1.0)), float((ours - single).abs().max())
        want = module(*run)
        assert torch.equal(ours.isnan(), want.isnan())
        # In fp16 eager PyTorch's own quotient may be rounded to the other side.
        rtol, atol = (2e-6, 2e-6) if ours.dtype is torch.float32 else (2**-8, 2**-11)
        assert torch.allclose(ours.nan_to_num(-1.0), want.nan_to_num(-1.0), rtol=rtol, atol=atol)


def drawn(*shape, dtype=torch.float32):
    return (torch.randn(shape) * 2).to(dtype)


MASKS = [(2, 1, 1, 37), (5, 37), (3, 1, 1), (2, 3, 5, 37), (37,)]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
@pytest.mark.parametrize("mask", MASKS, ids=str)
def test_sums(mask, dtype) -> None:
    torch.manual_seed(0)
    x, mask = drawn(2, 3, 5, 37, dtype=dtype), drawn(*mask, dtype=dtype)
    both(lambda x, mask: torch.softmax(x / math.sqrt(24) + mask, -1), (x, mask))
    both(lambda x, mask: torch.softmax(mask + x * 0.3, -1), (x, mask))
    both(lambda x, mask: (x + mask).softmax(-1), (x, mask))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
@pytest.mark.parametrize("width", [1, 3, 4, 5, 6, 8, 130])
def test_conditions(width, dtype) -> None:
    torch.manual_seed(0)
    x, mask = drawn(2, 3, 7, width, dtype=dtype), torch.rand(7, width) > 0.4
    both(lambda x, mask: (x / 8).masked_fill(mask, -INF).softmax(-1), (x, mask))
    both(lambda x, mask: torch.where(mask, x / 3, -10000.0).softmax(-1), (x, mask))
    both(lambda x, mask: torch.where(mask, torch.finfo(x.dtype).min, x * 3).softmax(-1), (x, mask))
    least = torch.full([], torch.finfo(dtype).min, dtype=dtype)
    both(lambda x, mask, least: torch.where(mask, x, least).softmax(-1), (x, mask, least))
    every = torch.rand(2, 1, 1, width) > 0.4
    both(lambda x, m, y: torch.where(m, x * 0.5 + y, -2.0).softmax(-1), (x, every, drawn(7, width, dtype=dtype)))


def test_a_scale_alone() -> None:
    torch.manual_seed(0)
    both(lambda x: (x * 0.125).softmax(-1), (drawn(3, 12),))


def test_changing_sizes() -> None:
    torch.manual_seed(0)
    rows, columns = torch.export.Dim("rows", min=1, max=64), torch.export.Dim("columns", min=2, max=300)
    shapes = {"inputs": ({1: rows, 2: columns}, {1: columns})}
    inputs = [(drawn(2, r, c), drawn(1, c)) for r, c in ((4, 8), (3, 5), (1, 300), (64, 6))]
    both(lambda x, mask: (x / 8 + mask).softmax(-1), inputs[0], runs=inputs[1:], dynamic_shapes=shapes)


def test_what_is_left_alone() -> None:
    torch.manual_seed(0)
    x, y = drawn(3, 5), drawn(5)
    both(lambda x, y: (x / 8 + y).softmax(0), (x, y), {"div": 1, "add": 1, "permute": 2, "softmax": 1})
    both(lambda x: x.softmax(-1), (x,), {"softmax": 1})
    both(lambda x, y: (z := x + y).softmax(-1) + z, (x, y), {"add": 2, "softmax": 1})
    both(lambda x, y: (y / 8 + x).softmax(-1), (x, y), {"div": 1, PATTERN: 1})  # the scale of the smaller tensor
    both(lambda x, y: (x.half() / 8).softmax(-1, dtype=torch.float32), (x, y), {"cast": 2, "div": 1, "softmax": 1})


def test_attention_by_hand() -> None:
    """BERT's and GPT-2's, of one operator less each step."""

    def bert(q, k, v, mask):
        return ((q @ k.transpose(-1, -2)) / math.sqrt(16) + mask).softmax(-1) @ v

    def gpt2(q, k, v, mask):
        scores = (q @ k.transpose(-1, -2)) / math.sqrt(16)
        return torch.where(mask, scores, torch.full([], torch.finfo(scores.dtype).min)).softmax(-1) @ v

    torch.manual_seed(0)
    q, k, v = (torch.randn(2, 3, 9, 16) for _ in range(3))
    mask = torch.zeros(2, 1, 1, 9).masked_fill(torch.rand(2, 1, 1, 9) > 0.7, -10000.0)
    both(bert, (q, k, v, mask), {"matmul": 2, PATTERN: 1})
    both(gpt2, (q, k, v, torch.ones(9, 9, dtype=torch.bool).tril()), {"matmul": 2, PATTERN: 1})
