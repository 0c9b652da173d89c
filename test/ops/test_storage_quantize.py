# SPDX-License-Identifier: Apache-2.0
"""quantize, dequantize and choose_qparams of values in textures, bit for bit."""

from __future__ import annotations

import pytest
import torch
import torch.ao.quantization.fx._decomposed
from support.dispatches import kernels
from support.textures import TEXTURE, Round

import pumice

ao, qd = torch.ops.torchao, torch.ops.quantized_decomposed
BLOCKS = [
    ((7,), [7]),
    ((5, 33), [1, 33]),
    ((5, 33), [5, 1]),
    ((2, 6, 5), [2, 1, 5]),
    ((3, 64), [1, 32]),
    ((2, 3, 4, 10), [1, 1, 2, 5]),
]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
@pytest.mark.parametrize("to", [torch.int8, torch.uint8, torch.int32], ids=str)
@pytest.mark.parametrize(("shape", "block"), BLOCKS, ids=str)
def test_quantized_values(shape, block, to, dtype) -> None:
    torch.manual_seed(sum(shape))
    low, high = {torch.int8: (-128, 127), torch.uint8: (0, 255), torch.int32: (-1000, 1000)}[to]
    module, x = Round(block, to, low, high).eval(), (torch.randn(shape) * 3).to(dtype)
    program = pumice.export(module, (x,), options=TEXTURE)
    assert set(program.report.operators) >= {"quantize", "dequantize", "choose_qparams"}
    session = pumice.load(bytes(program))
    for got, want in zip(session(x), module(x), strict=True):
        assert got.dtype == want.dtype and torch.equal(got, want)
    for got, want in zip(pumice.load(bytes(program), features="none,like_gpu")(x), module(x), strict=True):
        assert torch.equal(got, want)
    names = kernels(session, x)
    assert all(any(name.startswith(op + "[") and "texture3d" in name for name in names)
               for op in ("quantize", "dequantize", "choose_qparams_range"))  # fmt: skip


def test_every_half_is_quantized() -> None:
    x = torch.arange(65536, dtype=torch.int32).to(torch.int16).view(torch.float16).reshape(16, 4096)
    scale, zero = torch.tensor([0.0235]), torch.tensor([-7], dtype=torch.int32)

    class Quantize(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("scale", scale)
            self.register_buffer("zero", zero)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return ao.quantize_affine(x, [16, 4096], self.scale, self.zero, torch.int8, -128, 127)

    assert torch.equal(pumice.load(bytes(pumice.export(Quantize(), (x,), options=TEXTURE)))(x), Quantize()(x))


class Tokens(torch.nn.Module):
    """Scales of each token in fp64, as PyTorch makes them."""

    def forward(self, x: torch.Tensor):
        scale, zero = qd.choose_qparams_per_token_asymmetric(x, torch.int8)
        return qd.quantize_per_token(x, scale, zero, -128, 127, torch.int8)


@pytest.mark.parametrize("shape", [(5, 33), (2, 3, 6)], ids=str)
def test_fp64_scales(shape) -> None:
    torch.manual_seed(0)
    x = torch.randn(shape) * 3
    program = pumice.export(Tokens(), (x,), options=TEXTURE)
    for features in ("", "none,like_gpu"):
        session = pumice.load(bytes(program), features=features)
        assert torch.equal(session(x), Tokens()(x))
    assert any(name.startswith("quantize_f64[") and "texture3d" in name for name in kernels(session, x))
