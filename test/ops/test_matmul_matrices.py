# SPDX-License-Identifier: Apache-2.0
"""matmul by cooperative matrices, each of whose kernels is forced: in fp32 each element is then two fp16."""

from __future__ import annotations

import pytest
import torch
from support.device import is_llvmpipe
from support.dispatches import kernels
from support.extreme import INF, check, extreme
from support.quantized import Apply, check_product
from support.sums import sums

import pumice

SIZES = ("32x32",) if is_llvmpipe() else ("64x64", "128x128")  # its matrices are of 8 x 8 and its subgroups of 8
KERNELS = {
    torch.float32: [f"split_matrix{size}" for size in SIZES],
    torch.float16: [f"matrix{size}" for size in SIZES],
}

CASES = [
    (torch.matmul, (70, 72), (72, 40), 72),
    (torch.matmul, (5, 7), (7, 9), 7),
    (torch.matmul, (33, 197), (197, 65), 197),
    (torch.matmul, (3, 17, 40), (40, 34), 40),
    (torch.matmul, (17, 40), (3, 40, 34), 40),
    (torch.matmul, (2, 1, 5, 8), (4, 8, 12), 8),
    (torch.matmul, (3, 1, 2, 5, 7), (2, 1, 7, 4), 7),
    (lambda a, b: a @ b.transpose(-1, -2), (2, 4, 37, 64), (2, 4, 50, 64), 64),
    (lambda a, b: a.transpose(-1, -2) @ b, (2, 48, 40), (2, 48, 72), 48),
    (lambda a, b: a.permute(0, 2, 1, 3) @ b.permute(0, 2, 3, 1), (2, 40, 4, 32), (2, 35, 4, 32), 32),
]


def load(function, inputs, kernel: str, **options) -> pumice.Session:
    program = pumice.export(Apply(function), inputs, **options)
    assert program.report.operators == {"matmul": 1}
    return pumice.load(bytes(program), features=f"kernel={kernel}")


def ran(session: pumice.Session, *inputs: torch.Tensor) -> set[str]:
    return {part.split("[")[0] for kernel in kernels(session, *inputs) for part in kernel.split(" + ")}


@pytest.mark.parametrize("dtype", KERNELS, ids=str)
@pytest.mark.parametrize("case", range(len(CASES)))
def test_every_layout(case, dtype) -> None:
    function, a_shape, b_shape, k = CASES[case]
    torch.manual_seed(case)
    a, b = torch.randn(a_shape).to(dtype), torch.randn(b_shape).to(dtype)
    for kernel in KERNELS[dtype]:
        session = load(function, (a, b), kernel)
        assert "matmul_matrix" in ran(session, a, b)
        assert any(row.split for row in session.profile(a, b)) == (dtype is torch.float32)
        want = sums(function, a, b, terms=k)
        if dtype is torch.float32:  # what two fp16 of each factor leave, and the product of low parts
            spread = want.size * 2.0**-20
            error = (session(a, b).double() - want.want).abs()
            assert (error <= 2**-24 * want.want.abs() + want.error(2, unit=2.0**-23) + spread).all()
        else:
            check_product(session(a, b), want, 2, where=kernel, unit=2.0**-23)


def test_operands_that_need_no_copy_have_none() -> None:
    a, b = torch.randn(4, 40, 64).half(), torch.randn(4, 48, 64).half()
    straight = load(lambda a, b: a @ b.mT, (a, b), KERNELS[torch.float16][0])
    assert ran(straight, a, b) == {"matmul_matrix"}
    turned = load(lambda a, b: a @ b, (a, b.mT.contiguous()), KERNELS[torch.float16][0])
    assert ran(turned, a, b.mT.contiguous()) == {"matmul_rows", "matmul_matrix"}


@pytest.mark.parametrize("transposed", [False, True])
def test_extreme_rows_and_columns(transposed) -> None:
    width = 96
    a, b = extreme(70, width, 1), extreme(37, width, 2)
    a[8, 5], a[9, 60], a[10, 60], a[11, 5] = INF, -INF, float("nan"), 1e-38
    b[8, 5], b[9, 95], b[10, 5] = INF, -INF, 0
    function, inputs = (torch.mm, (a, b.mT.contiguous())) if transposed else (lambda a, b: a @ b.mT, (a, b))
    check(load(function, inputs, KERNELS[torch.float32][0])(*inputs), a, b)


def test_sizes_that_change() -> None:
    n = torch.export.Dim("n", min=1, max=200)
    for dtype, (kernel, *_) in KERNELS.items():
        shapes = [(torch.randn(2, m, 8).to(dtype), torch.randn(2, m, 8).to(dtype)) for m in (40, 1, 65, 130, 3)]
        for function, terms in ((lambda a, b: a @ b.mT, None), (lambda a, b: a.mT @ b, "n")):
            session = load(function, shapes[0], kernel, dynamic_shapes=[({1: n}, {1: n})])
            for a, b in shapes:
                want = sums(function, a, b, terms=a.shape[1] if terms else 8)
                extra = want.size * 2.0**-20 if dtype is torch.float32 else 2.0**-25
                unit = 2.0**-24 if dtype is torch.float32 else 2.0**-11
                error = (session(a, b).double() - want.want).abs()
                assert (error <= unit * want.want.abs() + want.error(2, unit=2.0**-23) + extra).all()


def test_switched_off() -> None:
    a, b = torch.randn(40, 64), torch.randn(64, 40)
    program = pumice.export(Apply(torch.mm), (a, b), options={"precision": "fp32"})
    session = pumice.load(bytes(program), features=f"kernel={KERNELS[torch.float32][0]}")
    assert ran(session, a, b) == {"matmul"}
