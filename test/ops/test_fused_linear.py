# SPDX-License-Identifier: Apache-2.0
"""A norm, a gate and an up projection as one operator, by every family of kernels that can be forced on the device."""

from __future__ import annotations

import pytest
import torch
from support.device import is_llvmpipe
from torch import nn

import pumice

KERNELS = ["gemv1", "gemv1x2", "gemv4", "gemv8", "gemvr1", "gemvr4", "tile64x64"] + ["matrix32x32"] * is_llvmpipe()
ON_GPUS = [
    "gemvf1",
    "gemvf8",
    "gemvf8x2",
    "gemvf16x2",
    "matrix64x64",
    "matrix128x128",
    "fragments64x128",
    "fragments64x256",
]


class Block(nn.Module):
    """silu(gate(norm(x))) * up(norm(x)), f16."""

    def __init__(self, width: int, inner: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(1 + 0.1 * torch.randn(width))
        self.gate, self.up = (nn.Linear(width, inner, bias=False) for _ in range(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x.float()
        y = self.weight * (y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype)
        return nn.functional.silu(self.gate(y)) * self.up(y)


@pytest.fixture(scope="module")
def block() -> tuple[Block, pumice.Program]:
    torch.manual_seed(0)
    module = Block(128, 176).half()
    pumice.quantize(module, "int4", group_size=32)
    rows = {0: torch.export.Dim("rows", min=1, max=200)}
    program = pumice.export(module, (torch.randn(8, 128).half(),), dynamic_shapes=(rows,))
    assert program.report.operators == {"fused_linear": 1}
    return module, program


@pytest.mark.parametrize("rows", [1, 3, 70, 133])
@pytest.mark.parametrize("kernel", KERNELS + ON_GPUS)
def test_every_kernel(block, kernel, rows) -> None:
    module, program = block
    torch.manual_seed(rows)
    x = torch.randn(rows, 128).half()
    try:
        session = pumice.load(bytes(program), features=f"like_gpu,kernel={kernel}")
    except pumice.InvalidInputError as error:
        if kernel in KERNELS:
            raise
        pytest.skip(str(error))
    got = session(x).double()
    with torch.no_grad():
        want = module(x).double()
    # The row, both sums and the result are rounded to fp16, and weights with their scale in tiles: ten roundings.
    assert (got - want).abs().max() <= 10 * 2**-11 * want.abs().max()
