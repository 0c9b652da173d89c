# SPDX-License-Identifier: Apache-2.0
"""Linears with x quantized to 8 bits in flight, every kernel forced, against fp64 of the integers eager chooses."""

from __future__ import annotations

import pytest
import torch
from support.device import is_llvmpipe
from support.int8 import FEW, FLOATS, INTEGERS, MATRICES, Layer, Weight

import pumice

ALL = [*FLOATS, *INTEGERS]

SHAPES = [
    # n, k, group: tiles are 16 rows x 64 columns
    (37, 96, 32), (64, 256, 64), (131, 384, 128), (15, 40, 20), (257, 24, 12), (33, 130, None), (1, 61, None),
    (128, 192, 64), (17, 2, None), (16, 3, None), (20, 64, 16),
]  # fmt: skip


@pytest.mark.parametrize(("bits", "zero"), [(4, False), (4, True), (8, True)])
@pytest.mark.parametrize(("n", "k", "group"), SHAPES)
def test_shapes(monkeypatch, n, k, group, bits, zero) -> None:
    Layer(Weight.random(n, k, group, bits, zero), torch.randn(n)).check_rows(monkeypatch, FEW)


@pytest.mark.parametrize("k", [96, 160])
def test_rows_of_padded_tiles(monkeypatch, k) -> None:
    """Kernels for floats see whole tiles of x: columns of padding must not count as another group."""
    layer = Layer(Weight.random(48, k, 32, 4, zero=True, dtype=torch.float16), dtype=torch.float16)
    layer.check_rows(monkeypatch, ["gemv1", "tile32x64", *(["matrix32x32"] * is_llvmpipe())], rows=(1, 33))


@pytest.mark.parametrize("mapping", [0, 1, 2])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
def test_mappings(monkeypatch, mapping, dtype) -> None:
    for bits, group in ((4, 32), (8, None)):
        weight = Weight.random(33, 160, group, bits, dtype=dtype)
        layer = Layer(weight, torch.randn(33).to(dtype), dtype=dtype, mapping=mapping, eps=1e-6)
        layer.check_rows(monkeypatch, [*ALL, *(MATRICES if dtype is torch.float16 else [])])


@pytest.mark.parametrize(("n", "k", "bits"), [(1, 3, 4), (37, 130, 8), (70, 321, 4)])
def test_matrices(monkeypatch, n, k, bits) -> None:
    layer = Layer(Weight.random(n, k, None, bits, zero=True), torch.randn(n), act=1, residual=True)
    layer.check_rows(monkeypatch, MATRICES, (1, 31, 33))


@pytest.mark.skipif(not is_llvmpipe(), reason="a kernel for the matrices of lavapipe")
def test_few_rows_beyond_the_last_tile_of_matrices(monkeypatch) -> None:
    """17 rows of tiles of 16: the last one by a GEMV, which the profile shows. Two tiles are on their way."""
    layer = Layer(Weight.random(70, 130, None, 8, zero=True), torch.randn(70))
    layer.check_rows(monkeypatch, ["int8_16x16d2"], rows=(17, 20, 21, 34))
    session = pumice.load(layer.program())
    kernels = [row.kernel for row in session.profile(torch.randn(17, 130)) if row.operator == layer.op]
    assert any("linear_matrix_int8" in kernel for kernel in kernels), kernels
    assert any("linear_dot_gemv" in kernel for kernel in kernels), kernels


@pytest.mark.parametrize(
    ("n", "k", "group", "bits", "zero"), [(37, 96, 32, 4, True), (35, 256, 128, 8, True), (70, 192, 64, 4, False)]
)
def test_matrices_of_groups(monkeypatch, n, k, group, bits, zero) -> None:
    Layer(Weight.random(n, k, group, bits, zero), torch.randn(n)).check_rows(monkeypatch, MATRICES, (1, 31, 33))


@pytest.mark.parametrize("mapping", [0, 1])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
def test_one_scale_for_all_rows(monkeypatch, mapping, dtype) -> None:
    weight = Weight.random(33, 130, None, 8, dtype=dtype)
    layer = Layer(weight, None, 0, False, dtype, mapping, per_token=0)
    layer.check_rows(monkeypatch, ALL)
    layer.check_rows(monkeypatch, (), (1, 9), undefined)


@pytest.mark.parametrize("residual", [False, True])
@pytest.mark.parametrize("act", [0, 1])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
def test_epilogue(monkeypatch, act, residual, dtype) -> None:
    for n, kernels in ((36, FEW), (35, ALL)):
        weight = Weight.random(n, 128, 64, 4, dtype=dtype)
        Layer(weight, None, act, residual, dtype).check_rows(monkeypatch, kernels, rows=(1, 9))


def test_to_255(monkeypatch) -> None:
    Layer(Weight.random(20, 64, 32, 4), low=0, high=255).check_rows(monkeypatch, ALL)


def zeros(m: int, k: int) -> torch.Tensor:
    return torch.zeros(m, k)


def one_sided(m: int, k: int) -> torch.Tensor:
    return torch.rand(m, k) + torch.arange(m)[:, None]


def huge_term(m: int, k: int) -> torch.Tensor:
    x = torch.randn(m, k)
    x[:, k // 2] = 1e30
    return x


def undefined(m: int, k: int) -> torch.Tensor:
    x = torch.randn(m, k)
    x[0, k - 1] = float("inf")
    x[m // 2, 0] = float("nan")
    x[m - 1, 1] = -float("inf")
    return x


@pytest.mark.parametrize("make", [zeros, one_sided, huge_term, undefined], ids=lambda make: make.__name__)
@pytest.mark.parametrize("mapping", [0, 1])
def test_values(monkeypatch, make, mapping) -> None:
    for bits, group in ((4, 32), (8, None)):
        layer = Layer(Weight.random(35, 128, group, bits, zero=True), mapping=mapping)
        layer.check_rows(monkeypatch, ALL, (1, 9), make)


@pytest.mark.parametrize("value", [-8, 7])
def test_extreme_weights(monkeypatch, value) -> None:
    weight = Weight.random(20, 192, 64, 4)
    weight.q.fill_(value)
    Layer(weight).check_rows(monkeypatch, ALL, (1, 9), one_sided)


def test_long_rows(monkeypatch) -> None:
    fit = [*FLOATS, "dot1", "dot1x2", "dot1x4", "dot1x7", "dot_tile32x64"]
    layer = Layer(Weight.random(18, 16384, 128, 4))
    layer.check_rows(monkeypatch, fit, (1, 9))
    Layer(Weight.random(18, 16384, None, 8, zero=True)).check_rows(monkeypatch, fit, (1, 9))
    monkeypatch.setenv("PUMICE_KERNEL", "dotw8")
    with pytest.raises(pumice.InvalidInputError, match="bytes of shared memory, the device has"):
        pumice.load(layer.program(), features="max_shared=32768")


def test_nothing_optional_is_needed(monkeypatch) -> None:
    for bits, group in ((4, 32), (8, None)):
        layer = Layer(Weight.random(130, 192, group, bits), torch.randn(130))
        layer.check_rows(monkeypatch, rows=(1, 3, 70), features="none,like_gpu")
