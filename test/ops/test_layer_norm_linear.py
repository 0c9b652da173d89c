# SPDX-License-Identifier: Apache-2.0
"""Linears that read a layer norm: kernels by fragments norm fp16 rows themselves where that is faster."""

from __future__ import annotations

import pytest
import torch
from support.device import device
from support.quantized import weight64
from torch import nn

import pumice


class Readers(nn.Module):
    """A norm and linears that read it; `both`: its result is an output, too."""

    def __init__(self, columns: int, outs: list[int], both: bool = False) -> None:
        super().__init__()
        self.norm, self.both = nn.LayerNorm(columns), both
        self.layers = nn.ModuleList(nn.Linear(columns, out) for out in outs)
        nn.init.normal_(self.norm.weight, 1, 0.3)
        nn.init.normal_(self.norm.bias, 0, 0.2)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y = self.norm(x)
        return (*[layer(y) for layer in self.layers], *([y] if self.both else []))


def rows_of(kind: str, rows: int, columns: int) -> torch.Tensor:
    x = torch.randn(rows, columns)
    if kind == "mean":
        x += 64
    if kind == "outlier":
        x[:, 0] = 3e4
    if kind == "equal":
        x[:] = 3.25
    if kind == "sizes":
        x *= torch.tensor([1e3, 1e-3, 1, 10])[torch.arange(rows) % 4][:, None]
    if kind == "special":
        x[0, 3], x[1, columns // 2] = float("nan"), float("inf")
    return x


def check(module: Readers, program: pumice.Program, x: torch.Tensor) -> bool:
    """Against fp64: the norm is off as ops/norm.cpp says; its result is rounded to fp16, each element by itself.
    Whether the norm was a dispatch of its own."""
    session, norm, columns = pumice.load(bytes(program)), module.norm, x.shape[1]
    outputs = session(x)
    x64, factor, bias = x.double(), norm.weight.double(), norm.bias.double()
    mean = x64.mean(1, keepdim=True)
    scale = ((x64 - mean).square().mean(1, keepdim=True) + norm.eps).rsqrt()
    y = (x64 - mean) * scale * factor + bias
    terms = columns / 32 + 10
    mean_off = 2**-24 * terms * x64.abs().mean(1, keepdim=True) * scale
    off = factor.abs() * mean_off + (2**-24 * (terms / 2 + 12) + mean_off**2 / 2) * (y - bias).abs()
    for layer, got in zip(module.layers, outputs, strict=False):
        weight = weight64(layer.weight)
        want = y @ weight.T + layer.bias.double()
        sums = y.abs() @ weight.abs().T + layer.bias.double().abs()
        # Seven standard deviations of roundings that are spread evenly.
        rounded = 4 * 2**-11 * (y.square() @ weight.square().T).sqrt()
        allowed = off @ weight.abs().T + 2**-23 * (columns + 30) * sums + rounded + 2**-11 * want.abs() + 2**-24
        assert torch.equal(got.isnan(), want.isnan())
        assert ((got.double() - want).abs() <= allowed)[~want.isnan()].all()
    return any(row.operator == "layer_norm" for row in session.profile(x))


@pytest.mark.parametrize("kind", ["plain", "mean", "outlier", "equal", "sizes", "special"])
@pytest.mark.parametrize("scheme", [None, "int4", "int8"])
def test_rows(scheme, kind) -> None:
    torch.manual_seed(3)
    module = Readers(192, [33, 48, 33]).half()
    if scheme:
        pumice.quantize(module, scheme, **({"group_size": 32} if scheme == "int4" else {}))
    x = rows_of(kind, 17, 192).half()
    by_itself = check(module, pumice.export(module, (x,)), x)
    if scheme is None or "fragments" not in device().features:
        assert by_itself == ("fragments" not in device().features)


def test_any_number_of_rows() -> None:
    torch.manual_seed(4)
    module = Readers(384, [64]).half()
    rows = {0: torch.export.Dim("rows", min=1, max=3000)}
    program = pumice.export(module, (torch.zeros(5, 384).half(),), dynamic_shapes=(rows,))
    for count in (1, 2, 197, 3000, 16):
        check(module, program, rows_of("plain", count, 384).half())


def test_a_norm_that_is_read_elsewhere() -> None:
    torch.manual_seed(5)
    module = Readers(128, [40, 24], both=True).half()
    x = rows_of("plain", 9, 128).half()
    assert check(module, pumice.export(module, (x,)), x)
