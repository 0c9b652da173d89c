# SPDX-License-Identifier: Apache-2.0
"""Linears that read a layer norm: kernels by fragments norm rows themselves where that is faster, by moments that the
linear before them leaves."""

from __future__ import annotations

import copy

import pytest
import torch
from support.device import device
from support.dispatches import dispatches
from support.quantized import weight64
from support.roundings import roundings
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
        x[0, columns // 2] = float("inf")
        x[-1, 3] = float("nan")
    return x


def check(module: Readers, program: pumice.Program, x: torch.Tensor, features: str = "") -> bool:
    """Against fp64: the norm is off as ops/norm.cpp says, or of one row by as many additions as
    glsl/include/linear/rms_norm.glslh says; its result is rounded to x's type, each element by itself. Whether the norm
    was a dispatch of its own."""
    session, norm, columns = pumice.load(bytes(program), features=features or None), module.norm, x.shape[1]
    unit = 2**-11 if x.dtype is torch.float16 else 2**-24
    outputs = session(x)
    x64, factor, bias = x.double(), norm.weight.double(), norm.bias.double()
    mean = x64.mean(1, keepdim=True)
    scale = ((x64 - mean).square().mean(1, keepdim=True) + norm.eps).rsqrt()
    y = (x64 - mean) * scale * factor + bias
    terms = columns / 32 + (10 if x.shape[0] > 1 else 56)
    mean_off = 2**-24 * terms * x64.abs().mean(1, keepdim=True) * scale
    off = factor.abs() * mean_off + (2**-24 * (terms / 2 + 12) + mean_off**2 / 2) * (y - bias).abs()
    for layer, got in zip(module.layers, outputs, strict=False):
        weight = weight64(layer.weight)
        want = y @ weight.T + layer.bias.double()
        sums = y.abs() @ weight.abs().T + layer.bias.double().abs()
        # Seven standard deviations of roundings that are spread evenly.
        rounded = 4 * unit * (y.square() @ weight.square().T).sqrt()
        allowed = off @ weight.abs().T + 2**-23 * (columns + 30) * sums + rounded + unit * want.abs() + 2**-24
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


@pytest.mark.parametrize("kind", ["plain", "mean", "outlier", "equal", "special"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
@pytest.mark.parametrize("scheme", [None, "int4"])
def test_one_row_by_a_kernel_without_matrices(scheme, dtype, kind) -> None:
    torch.manual_seed(8)
    module = Readers(200, [33, 48]).to(dtype)
    if scheme:
        pumice.quantize(module, scheme, group_size=8)
    x = rows_of(kind, 1, 200).to(dtype)
    program = pumice.export(module, (x,))
    assert not check(module, program, x, "kernel=gemv1")
    assert check(module, program, x, "kernel=tile64x64")


def test_a_norm_that_is_read_elsewhere() -> None:
    torch.manual_seed(5)
    module = Readers(128, [40, 24], both=True).half()
    x = rows_of("plain", 9, 128).half()
    assert check(module, pumice.export(module, (x,)), x)


class Sum(nn.Module):
    """A module, so that support.roundings sees its result."""

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return a + b


class Block(nn.Module):
    """The feed-forward half of a transformer's layer after a product, with the norms after the sums (BERT) or before
    the products (ViT); `t` is what the sums add up to."""

    def __init__(self, columns: int, inner: int, post: bool) -> None:
        super().__init__()
        self.first, self.wide, self.narrow = (
            nn.Linear(columns, columns),
            nn.Linear(columns, inner),
            nn.Linear(inner, columns),
        )
        self.norms, self.gelu, self.post = nn.ModuleList(nn.LayerNorm(columns) for _ in range(2)), nn.GELU(), post
        self.last, self.sums = nn.Linear(columns, columns), nn.ModuleList(Sum() for _ in range(2))
        for norm in self.norms:
            nn.init.normal_(norm.weight, 1, 0.3)
            nn.init.normal_(norm.bias, 0, 0.2)

    def forward(self, x: torch.Tensor, residual: torch.Tensor) -> torch.Tensor:
        t = self.sums[0](self.first(x), residual)
        if self.post:
            t = self.norms[0](t)
        y = t if self.post else self.norms[0](t)
        t = self.sums[1](self.narrow(self.gelu(self.wide(y))), t)
        return self.last(self.norms[1](t))


def exact(block: Block) -> Block:
    """The same in fp64, with the weights that integers stand for."""
    made = copy.deepcopy(block)
    for layer in (layer for layer in made.modules() if isinstance(layer, nn.Linear)):
        layer.weight = nn.Parameter(weight64(layer.weight), requires_grad=False)
    return made.double()


UNITS = {torch.float16: 2.0**-11, torch.float32: 2.0**-22}  # fp32 may be split


CASES = [(None, torch.float16), ("int4", torch.float16), ("int8", torch.float32), (None, torch.float32)]


@pytest.mark.parametrize("kind", ["plain", "mean", "outlier", "sizes", "special"])
@pytest.mark.parametrize("post", [True, False], ids=["post", "pre"])
@pytest.mark.parametrize(("scheme", "dtype"), CASES)
def test_moments(scheme, dtype, post, kind, tmp_path) -> None:
    """The residual, its norm and the sums have rows far from 0, of all sizes and of NaN."""
    torch.manual_seed(6)
    rows, columns = (37, 192) if dtype is torch.float16 else (130, 384)  # fewer are not split
    block = Block(columns, 2 * columns, post).to(dtype)
    if scheme:
        pumice.quantize(block, scheme, **({"group_size": 32} if scheme == "int4" else {}))
    x, residual = torch.randn(rows, columns).to(dtype), rows_of(kind, rows, columns).to(dtype)
    program = pumice.export(block, (x, residual))
    got = pumice.load(bytes(program))(x, residual)
    want, off = roundings(exact(block), lambda block: block(x.double(), residual.double()), UNITS[dtype])
    live = ~want.isnan().any(1)
    assert torch.equal(got.isnan().any(1), ~live) and live.sum() >= rows - 2
    # Row by row: those of the residual have sizes of their own.
    error, expected = ((e[live].norm(dim=1) / want[live].norm(dim=1)) for e in (got.double() - want, off))
    assert float(error.max()) <= 4 * float(expected.max()), (float(error.max()), float(expected.max()))
    assert dispatches(program, tmp_path).get("layer_norm") == 0


def test_norms_that_are_dispatches(tmp_path) -> None:
    """Of rows without whole tiles, and of few rows in fp32."""
    torch.manual_seed(7)
    x = torch.randn(9, 192)
    program = pumice.export(Block(192, 128, True), (x, x))
    assert dispatches(program, tmp_path)["layer_norm"] == 2
    x = torch.randn(37, 200).half()
    program = pumice.export(Block(200, 128, False).half(), (x, x))
    assert dispatches(program, tmp_path)["layer_norm"] == 2
