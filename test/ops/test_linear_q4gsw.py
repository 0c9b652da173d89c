# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
import torch
from support.linear_rows import ALL, FEW, ROWS, check_rows
from support.quantized import check_linear, quantized

import pumice


def layer(
    n: int, k: int, group: int | None, affine: bool = False, bias: bool = True, dtype=torch.float32
) -> torch.nn.Linear:
    torch.manual_seed(n * k)
    return quantized(torch.nn.Linear(k, n, bias=bias).to(dtype), 4, group, affine)


SHAPES = [
    # n, k, group: tiles are 16 rows x 64 columns
    (16, 64, 32), (37, 96, 32), (64, 256, 64), (131, 384, 128), (15, 40, 20), (257, 24, 12), (33, 130, None),
    (1, 61, None), (128, 192, 64), (17, 2, None),
]  # fmt: skip


@pytest.mark.parametrize("affine", [False, True], ids=["symmetric", "affine"])
@pytest.mark.parametrize(("n", "k", "group"), SHAPES)
def test_shapes(monkeypatch, n, k, group, affine) -> None:
    check_rows(monkeypatch, layer(n, k, group, affine), "linear_q4gsw")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
def test_every_kernel(monkeypatch, dtype) -> None:
    check_rows(monkeypatch, layer(131, 96, 32, affine=True, dtype=dtype), "linear_q4gsw", ALL, ROWS)


@pytest.mark.parametrize("affine", [False, True], ids=["symmetric", "affine"])
@pytest.mark.parametrize(("n", "k", "group"), [(37, 96, 32), (33, 130, None), (130, 128, 128)])
def test_half(monkeypatch, n, k, group, affine) -> None:
    check_rows(monkeypatch, layer(n, k, group, affine, bias=affine, dtype=torch.float16), "linear_q4gsw")


@pytest.mark.parametrize("pattern", ["all -8", "all 7", "equal to zero point", "one huge term", "alternating"])
def test_values(monkeypatch, pattern) -> None:
    """The budget counts sum|x w| only: a weight equal to its zero point must add exactly nothing."""
    module = layer(35, 128, 32, affine=True, bias=False)
    q, zero = module.weight.qdata, module.weight.zero_point
    make = torch.randn
    if pattern.startswith("all"):
        q.fill_(int(pattern.split()[1]))
    elif pattern == "equal to zero point":
        zero.clamp_(-8, 7)
        q.copy_(zero.repeat_interleave(32, 1))
        q[3, 5] += 1 if q[3, 5] < 7 else -1
    elif pattern == "one huge term":
        q[:, 64] = zero[:, 2].clamp(-8, 7)
        zero[:, 2].clamp_(-8, 7)

        def make(m, k):
            x = torch.randn(m, k)
            x[:, 64] = 1e30
            return x
    else:
        q[:, ::2], q[:, 1::2] = 7, -8
    check_rows(monkeypatch, module, "linear_q4gsw", FEW, [1, 9], make)


def test_large_zero_points(monkeypatch) -> None:
    module = layer(20, 64, 32, affine=True)
    module.weight.zero_point.copy_(torch.arange(40).reshape(20, 2) * 6 - 128)
    check_rows(monkeypatch, module, "linear_q4gsw", ["gemv1", "gemvr1", "tile32x64"], [1, 9])


def test_nothing_optional_is_needed() -> None:
    module, x = layer(130, 192, 32, affine=True), torch.randn(70, 192)
    data = bytes(pumice.export(module, (x,)))
    check_linear(pumice.load(data, features="none")(x), x, module)


class Twice(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(64, 64)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(self.layer(x))


def test_one_layer_twice_is_packed_once() -> None:
    module, x = quantized(Twice(), 4, 32), torch.randn(3, 64)
    session = pumice.load(bytes(pumice.export(module, (x,))))
    torch.testing.assert_close(session(x), module(x), rtol=1e-4, atol=1e-4)


def test_refused_groups(e2e) -> None:
    e2e.refuses(layer(8, 30, 6), torch.randn(2, 30), match="groups of 6 of 30 columns")
