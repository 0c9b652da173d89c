# SPDX-License-Identifier: Apache-2.0
"""Attention that reads its queries, keys and values in the result of one layer."""

from __future__ import annotations

import pytest
import torch
from support.unfused import Function, check_pattern
from torch import nn
from torch.nn import functional as F

import pumice

PATTERN = "split_attention"
HEADS, SIZE = 3, 8
COLUMNS = HEADS * SIZE


def _heads(rows):
    return rows.view(*rows.shape[:2], -1, SIZE).transpose(1, 2)


def _split(x):
    return (_heads(part) for part in x.split(COLUMNS, dim=2))


def _chunk(x):
    return (_heads(part) for part in x.chunk(3, -1))


def _sizes(x):
    """Fewer heads of keys and values, which come first."""
    k, v, q = x.split([SIZE, SIZE, x.shape[2] - 2 * SIZE], dim=-1)
    return _heads(q), _heads(k), _heads(v)


def _slices(x):
    q, k, v = x[..., :COLUMNS], x[..., -2 * COLUMNS : -COLUMNS], x[:, :, -COLUMNS:]
    return _heads(q), _heads(k), _heads(v)


def _unbind(x):
    return x.reshape(*x.shape[:2], 3, HEADS, SIZE).permute(2, 0, 3, 1, 4).unbind(0)


def _select(x):
    parts = x.reshape(*x.shape[:2], 3, HEADS, SIZE).permute(2, 0, 3, 1, 4)
    return parts[-3], parts[1], parts[2]


def attention(inputs):
    def forward(layer, x):
        y = F.scaled_dot_product_attention(*inputs(layer(x)), is_causal=True, enable_gqa=inputs is _sizes)
        return y.transpose(1, 2).reshape(*x.shape[:2], -1)

    return forward


@pytest.mark.parametrize("inputs", [_split, _chunk, _sizes, _slices, _unbind, _select])
def test_split_attention(inputs) -> None:
    torch.manual_seed(0)
    unfused = {"linear": 1, "sdpa": 1, "slice": 3, "view": 4}
    if inputs in (_unbind, _select):
        unfused = {"linear": 1, "sdpa": 1, "permute": 1, "select": 3, "view": 2}
    fused = {"linear": 1, "sdpa_heads": 1, "view": 4}
    module, x = Function(attention(inputs), nn.Linear(16, 3 * COLUMNS)), torch.randn(2, 9, 16)
    check_pattern(module, x, pattern=PATTERN, fused=fused, unfused=unfused, rtol=5e-6)


def _values(x):
    """Queries and keys that are computed from theirs."""
    q, k, v = _unbind(x)
    return q * 2, k + 1, v


def _also(x):
    q, k, v = _split(x)
    return q, k, v.flip(2)


@pytest.mark.parametrize("inputs", [_values, _also])
def test_some_of_them(inputs) -> None:
    torch.manual_seed(1)
    module, x = Function(attention(inputs), nn.Linear(16, 3 * COLUMNS)), torch.randn(2, 9, 16)
    program = pumice.export(module, (x,))
    assert program.report.operators["sdpa_heads"] == 1
    with torch.no_grad():
        torch.testing.assert_close(pumice.load(bytes(program))(x), module(x), atol=2e-5, rtol=2e-5)


def _between(x):
    """From the middle of a head on."""
    return (_heads(x[..., first : first + COLUMNS]) for first in (4, 0, 4))


def _inside(x):
    """Heads of queries, keys and values by turns."""
    return x.view(*x.shape[:2], HEADS, -1).transpose(1, 2).chunk(3, -1)


def _parts_last(x):
    return x.view(*x.shape[:2], HEADS, SIZE, 3).permute(4, 0, 2, 1, 3).unbind(0)


@pytest.mark.parametrize("inputs", [_between, _inside, _parts_last])
def test_what_is_copied(inputs) -> None:
    torch.manual_seed(2)
    module, x = Function(attention(inputs), nn.Linear(16, 3 * COLUMNS)), torch.randn(2, 9, 16)
    program = pumice.export(module, (x,))
    first = inputs is _between  # whose keys begin with a head
    assert ("sdpa_heads" in program.report.operators) is first
    with torch.no_grad():
        torch.testing.assert_close(pumice.load(bytes(program))(x), module(x), atol=2e-5, rtol=2e-5)


@pytest.mark.parametrize("inputs", [_split, _unbind])
@pytest.mark.parametrize(("most", "is_read"), [(64, True), (None, False)])
def test_lengths_that_change(inputs, most, is_read) -> None:
    torch.manual_seed(3)
    module = Function(attention(inputs), nn.Linear(16, 3 * COLUMNS)).half()
    dims = {0: torch.export.Dim("batch", min=1, max=4), 1: torch.export.Dim("length", min=2, max=most)}
    x = torch.randn(2, 9, 16).half()
    program = pumice.export(module, (x,), dynamic_shapes=((dims,),))
    assert ("sdpa_heads" in program.report.operators) is is_read
    session = pumice.load(bytes(program))
    for shape in ((1, 2, 16), (4, 64, 16), (3, 33, 16)):
        x = torch.randn(shape).half()
        with torch.no_grad():
            torch.testing.assert_close(session(x), module(x), atol=2e-3, rtol=2e-3)
