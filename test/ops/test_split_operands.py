# SPDX-License-Identifier: Apache-2.0
"""fp32 products on units that multiply fp16 (kernels split_*): rows of any size, tiny beside huge, Inf and NaN."""

from __future__ import annotations

import pytest
import torch
from support.device import is_llvmpipe
from support.extreme import INF, check, extreme
from support.quantized import quantized, weight64

import pumice

KERNELS = [
    "split_matrix32x32",
    "split_matrix64x64",
    "split_matrix64x128",
    "split_matrix128x128",
    "split64x128",
    "split64x256",
]
FEW_ROWS = ["split_gemvf8", "split_gemvf16x2", "split_gemvf16x6"]  # of whole tiles
OF_INTEGERS = ["split_gemvf1", "split_gemvf4", "split_gemvf16x4"]
WIDTH, OUT = 96, 37


def export(module: torch.nn.Module, precision: str = "split", width: int = WIDTH) -> pumice.Program:
    rows = {0: torch.export.Dim("rows", min=1, max=200)}
    options = {"precision": precision}
    return pumice.export(module, (torch.zeros(5, width),), dynamic_shapes=(rows,), options=options)


def load(module: torch.nn.Module, kernel: str, width: int = WIDTH) -> pumice.Session:
    program = export(module, width=width)
    try:
        return pumice.load(bytes(program), features=f"kernel={kernel}")
    except pumice.InvalidInputError as error:
        if kernel == KERNELS[0] and is_llvmpipe():
            raise
        pytest.skip(str(error))


def width_of(kernel: str) -> int:
    return WIDTH if kernel in KERNELS else 128


@pytest.mark.parametrize("kernel", KERNELS + FEW_ROWS)
def test_fp32_weights(kernel) -> None:
    width = width_of(kernel)
    module = torch.nn.Linear(width, OUT, bias=False)
    weight = extreme(OUT, width, 1)
    weight[8, 5], weight[9, 60], weight[10, 60], weight[11, 5] = INF, -INF, float("nan"), 1e-38
    weight[12:, 5] = 0
    weight[20] *= 1e-41  # subnormal, and its neighbour in a pair, row 28, is not: times Inf it is Inf
    module.weight = torch.nn.Parameter(weight, requires_grad=False)
    session = load(module, kernel, width)
    x = extreme(70, width, 2)
    # Inf times Inf, a subnormal number, 0; tiny times Inf; rows that end with padding.
    x[8, 5], x[9, 5], x[10, 60], x[11, 60], x[12, 95] = INF, -INF, float("nan"), 1e-38, INF
    x[13, 60], x[14, 5] = 0, 2.0**31  # far larger than the others, and its weights are mostly 0
    for rows in (70, 33, 1):
        check(session(x[-rows:]), x[-rows:], weight)


@pytest.mark.parametrize("kernel", KERNELS + FEW_ROWS + OF_INTEGERS)
@pytest.mark.parametrize("bits", [4, 8])
def test_integer_weights(kernel, bits) -> None:
    torch.manual_seed(3)
    width = width_of(kernel)
    module = quantized(torch.nn.Linear(width, OUT, bias=False), bits, 32 if bits == 4 else None, affine=bits == 8)
    session = load(module, kernel, width)
    weight = weight64(module.weight)
    x = extreme(70, width, 4)
    for rows in (70, 33):
        check(session(x[-rows:]), x[-rows:], weight)
    x[8, 5], x[9, 95], x[10, 60] = INF, -INF, float("nan")
    got = session(x)
    infinite = weight[:, 5] != 0
    assert (got[8, infinite] == weight[infinite, 5].float().sign() * INF).all()
    assert got[8, ~infinite].isnan().all() and got[10].isnan().all()
    check(got[11:], x[11:], weight)


class Gated(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(1 + 0.1 * torch.randn(WIDTH))
        self.gate, self.up = (torch.nn.Linear(WIDTH, 48, bias=False) for _ in range(2))

    def norm(self, x: torch.Tensor) -> torch.Tensor:
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.silu(self.gate(self.norm(x))) * self.up(self.norm(x))


@pytest.mark.thorough
def test_in_a_fused_linear() -> None:
    torch.manual_seed(5)
    module, x = Gated(), torch.randn(70, WIDTH)
    session = load(module, KERNELS[0 if is_llvmpipe() else 1])
    assert any("linear_matrix[split" in row.kernel for row in session.profile(x))
    with torch.no_grad():
        want, y = module.double()(x.double()), module.norm(x.double())
        gate, up = module.gate(y), module.up(y)
        sizes = y.abs() @ module.gate.weight.abs().T, y.abs() @ module.up.weight.abs().T
    # linear_error of both sums, and 2^-20 of the norm: a mean of 96 squares, a root and four products.
    error = 2**-23 * (WIDTH + 26) + 2**-19 + 2**-20
    allowed = (
        error * (1.13 * sizes[0] * up.abs() + sizes[1] * torch.nn.functional.silu(gate).abs()) + 2**-22 * want.abs()
    )
    assert ((session(x).double() - want).abs() <= allowed).all()


def test_switched_off() -> None:
    program = export(torch.nn.Linear(WIDTH, OUT, bias=False))
    with pytest.raises(pumice.InvalidInputError, match=r"'split'|coopmat"):
        pumice.load(bytes(program), features=f"-split,kernel={KERNELS[0]}")


@pytest.mark.every
def test_precision_fp32() -> None:
    """No kernel splits, also when forced to; a 1 beside 1e30 is there, which split operands lose."""
    torch.manual_seed(6)
    module = torch.nn.Linear(WIDTH, OUT, bias=False).requires_grad_(False)
    module.weight[:, 5] = 0
    x = torch.randn(130, WIDTH)
    x[:, 5] = 1e30
    want = x.double() @ module.weight.double().T
    allowed = 2**-24 * want.abs() + 2**-23 * (WIDTH + 26) * (x.double().abs() @ module.weight.double().abs().T)

    fp32 = export(module, "fp32")
    split, program = load(module, KERNELS[0 if is_llvmpipe() else 1]), bytes(fp32)
    assert any("in fp32 alone" in note for note in fp32.report.notes)
    assert split.precision == "split" and any(row.split for row in split.profile(x))
    assert not ((split(x).double() - want).abs() <= allowed).any()
    with pytest.raises(pumice.InvalidInputError, match="'split', which `features` or the program's precision"):
        pumice.load(program, features=f"kernel={KERNELS[0]}")
    session = pumice.load(program)
    assert session.precision == "fp32" and not any(row.split for row in session.profile(x))
    assert ((session(x).double() - want).abs() <= allowed).all()
