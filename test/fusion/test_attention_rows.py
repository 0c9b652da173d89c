# SPDX-License-Identifier: Apache-2.0
"""Rows of an attention's result that are read are rows of its queries (fusion/attention_rows.py)."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from support.unfused import Function, check_pattern
from torch.nn import functional as F

PATTERN = "attention_rows"
Attention = Callable[..., torch.Tensor]


def tensors(keys: int = 11, heads: int = 4) -> tuple[torch.Tensor, ...]:
    torch.manual_seed(3)
    return torch.randn(2, 4, 9, 8), torch.randn(2, heads, keys, 8), torch.randn(2, heads, keys, 8)


ROWS = {
    "the first": lambda y: y[:, :, :1],
    "the last": lambda y: y[:, :, -1:],
    "some": lambda y: y[:, :, 2:5],
    "steps": lambda y: y[:, :, 1:8:3],
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
@pytest.mark.parametrize("rows", ROWS.values(), ids=ROWS)
def test_rows(rows: Attention, dtype: torch.dtype) -> None:
    attention = Function(lambda q, k, v: rows(F.scaled_dot_product_attention(q, k, v)))
    inputs = [each.to(dtype) for each in tensors()]
    rtol = 5e-6 if dtype == torch.float32 else 2e-3
    ops = {"sdpa": 1, "slice": 1}
    check_pattern(attention, *inputs, pattern=PATTERN, fused=ops, unfused=ops, rtol=rtol)


@pytest.mark.parametrize(
    ("mask", "slices"), [((1, 1, 9, 11), 2), ((2, 4, 9, 11), 2), ((1, 1, 1, 11), 1), ((2, 4, 1, 11), 1)], ids=str
)
@pytest.mark.parametrize("kind", ["bool", "float"])
def test_masks(mask: tuple[int, ...], slices: int, kind: str) -> None:
    """Rows of the mask, too, where it has any."""
    inputs = [*tensors(), torch.randn(mask) > -0.5 if kind == "bool" else torch.randn(mask)]
    attention = Function(lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, attn_mask=m)[:, :, 3:6])
    check_pattern(
        attention,
        *inputs,
        pattern=PATTERN,
        fused={"sdpa": 1, "slice": slices},
        unfused={"sdpa": 1, "slice": 1},
        rtol=5e-6,
    )


def test_transposed() -> None:
    """Of queries and results with rows in front of heads."""
    q, k, v = tensors(heads=2)

    def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        y = F.scaled_dot_product_attention(q.transpose(1, 2), k, v, enable_gqa=True)
        return y[:, :, 2:5].transpose(1, 2)

    ops = {"sdpa": 1, "slice": 1}
    check_pattern(
        Function(attention),
        q.transpose(1, 2),
        k,
        v,
        pattern=PATTERN,
        fused=ops,
        unfused=ops | {"permute": 1},
        rtol=5e-6,
    )


LEFT = {
    "causal": lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True)[:, :, :1],
    "columns": lambda q, k, v: F.scaled_dot_product_attention(q, k, v)[..., :3],
    "heads": lambda q, k, v: F.scaled_dot_product_attention(q, k, v)[:, 1:2],
}


@pytest.mark.parametrize("attention", LEFT.values(), ids=LEFT)
def test_what_stays(attention: Attention) -> None:
    ops = {"sdpa": 1, "slice": 1}
    check_pattern(Function(attention), *tensors(), pattern=PATTERN, fused=ops, unfused=ops, rtol=5e-6)


def test_two_readers() -> None:
    """The attention is made once for both."""

    def both(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        y = F.scaled_dot_product_attention(q, k, v)
        return y[:, :, :1] + y[:, :, 3:4]

    ops = {"sdpa": 1, "slice": 2, "add": 1}
    check_pattern(Function(both), *tensors(), pattern=PATTERN, fused=ops, unfused=ops, rtol=5e-6)
