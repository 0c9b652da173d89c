# SPDX-License-Identifier: Apache-2.0
"""The bounds of tests in Python see one column that is left out of a long sum, and let a right sum pass."""

from __future__ import annotations

import dataclasses

import pytest
import torch
from support.int8 import Layer, Weight, check_integers, roundings
from support.quantized import check_product
from support.sums import product

LENGTHS = [4096, 14336, 16384]


@pytest.mark.parametrize("k", LENGTHS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
def test_floats(k, dtype) -> None:
    torch.manual_seed(k)
    a, b = torch.randn(9, k).to(dtype), torch.randn(k, 37).to(dtype)
    check_product((a.float() @ b.float()).to(dtype), product(a, b), 26)
    a_less = a.clone()
    a_less[:, 7] = 0
    with pytest.raises(AssertionError, match="times what is allowed"):
        check_product((a_less.float() @ b.float()).to(dtype), product(a, b), 26)


def test_one_term_has_no_room_for_more_than_roundings() -> None:
    a, b = torch.zeros(9, 4096), torch.randn(4096, 37)
    a[:, 5] = torch.randn(9)
    sums = dataclasses.replace(product(a, b), terms=1)
    check_product(a @ b, sums, 2)
    with pytest.raises(AssertionError):
        check_product((a @ b) * (1 + 2.0**-19), sums, 2)


@pytest.mark.parametrize("k", LENGTHS)
def test_kernels_of_integers(k) -> None:
    """Their sums are exact: an error of 2^-19 of y is one, which the bound of floats allows at these lengths."""
    layer, x = Layer(Weight.random(37, k, None, 8)), torch.randn(9, k)
    layer.kernel = "dot1"
    q, scale, zero = layer.integers(x)
    right = (q.double() - zero.double()) @ layer.weight.real().T * scale.double()
    layer.check(right.float(), x)
    less = layer.weight.real()
    less[:, 7] = 0
    for wrong in ((q.double() - zero.double()) @ less.T * scale.double(), right * (1 + 2.0**-19)):
        with pytest.raises(AssertionError, match="beyond the budget"):
            layer.check(wrong.float(), x)
    layer.kernel = ""
    layer.check((right * (1 + 2.0**-19)).float(), x)


@pytest.mark.parametrize("k", LENGTHS)
def test_results_of_integers(k) -> None:
    weight, x = Weight.random(37, k, None, 8), torch.randint(-128, 128, (9, k)) * 0.02
    sums = product(x, weight.real().T)
    scale = float(sums.want.abs().max()) / 100
    tail = (scale, 3, -128, 127)
    check_integers(((sums.want / scale).round() + 3).clamp(-128, 127), sums, roundings("dot1", weight), *tail)
    less = x.clone()
    less[:, : k // 64] = 0
    wrong = ((product(less, weight.real().T).want / scale).round() + 3).clamp(-128, 127)
    with pytest.raises(AssertionError, match="integers differ"):
        check_integers(wrong, sums, roundings("dot1", weight), *tail)
