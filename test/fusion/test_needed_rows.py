# SPDX-License-Identifier: Apache-2.0
"""Rows that nothing reads are not computed (passes/needed_rows.py)."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from support.unfused import Function
from torch import nn
from torch.nn import functional as F

import pumice


class Block(nn.Module):
    """The end of a vision transformer or of BERT: attention, a layer after it, norms, a feed-forward network."""

    def __init__(self, size: int = 32, heads: int = 4) -> None:
        super().__init__()
        self.heads = heads
        self.norm, self.after, self.last = (nn.LayerNorm(size) for _ in range(3))
        self.q, self.k, self.v, self.o = (nn.Linear(size, size) for _ in range(4))
        self.up, self.down = nn.Linear(size, 3 * size), nn.Linear(3 * size, size)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.norm(x)
        q, k, v = (layer(y).unflatten(-1, (self.heads, -1)).transpose(1, 2) for layer in (self.q, self.k, self.v))
        x = x + self.o(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
        return self.last(x + self.down(F.gelu(self.up(self.after(x)))))


class Ends(nn.Module):
    """A block, and what is read of it."""

    def __init__(self, end: Callable[..., torch.Tensor]) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.block, self.head, self.end = Block(), nn.Linear(32, 5), end

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.end(self.head, self.block(x))


def check(module: nn.Module, x: torch.Tensor, **options) -> dict[str, int]:
    """Runs it; the operators that were called."""
    module.eval()
    program = pumice.export(module, (x,), **options)
    with torch.no_grad():
        want = module(x)
    torch.testing.assert_close(pumice.load(bytes(program))(x), want, rtol=1e-5, atol=2e-5)
    return program.report.operators


CUT = {
    "the first": lambda head, y: head(y[:, 0]),
    "the last": lambda head, y: head(y[:, -1]),
    "of all layers": lambda head, y: head(y)[:, 3],
    "two": lambda head, y: head(y[:, 2:4]),
    "the last three, flat": lambda head, y: head(y)[:, -3:].flatten(1),
    "from the fourth on": lambda head, y: head(y[:, 4:]),
}


@pytest.mark.parametrize("end", CUT.values(), ids=CUT)
def test_rows_that_are_read(end) -> None:
    """The attention and what is added to it are cut: two slices, and no select."""
    operators = check(Ends(end), torch.randn(2, 7, 32))
    assert operators["slice"] == 2 and "select" not in operators


WHOLE = {  # and the slices and selects that are left: one for each that is written, of the block's result
    "every row": (lambda head, y: head(y).sum(1), 0),
    "two kinds of rows": (lambda head, y: head(y[:, 0]) + head(y[:, 1]), 2),
    "rows that are read otherwise, too": (lambda head, y: head(y[:, 0]) + y.mean(), 1),
    "columns": (lambda head, y: head(y)[..., 2], 1),
    "steps": (lambda head, y: head(y[:, ::2]), 1),
    "all but the first": (lambda head, y: head(y[:, 1:]), 1),
    "mixed rows": (lambda head, y: head(y.softmax(1))[:, 0], 1),
}


@pytest.mark.parametrize(("end", "left"), WHOLE.values(), ids=WHOLE)
def test_rows_that_stay(end, left) -> None:
    """The block is computed for all rows."""
    operators = check(Ends(end), torch.randn(2, 7, 32))
    assert operators.get("slice", 0) + operators.get("select", 0) == left


@pytest.mark.parametrize("end", list(CUT.values())[:4], ids=list(CUT)[:4])
@pytest.mark.parametrize("counts", [(1, 1, 1), (1, 3, 2)], ids=["one sequence", "any number"])
def test_lengths_that_change(end, counts) -> None:
    """Of BERT: the row is the same, its sequence is not."""
    module = Ends(end).eval()
    count, length = torch.export.Dim("count", min=1, max=8), torch.export.Dim("length", min=4, max=64)
    sizes = {1: length} if max(counts) == 1 else {0: count, 1: length}
    program = pumice.export(module, (torch.randn(counts[2], 7, 32),), dynamic_shapes=(sizes,))
    assert program.report.operators["slice"] == 2
    rest = pumice.export(
        Ends(WHOLE["all but the first"][0]).eval(), (torch.randn(1, 7, 32),), dynamic_shapes=({1: length},)
    )
    assert rest.report.operators["slice"] == 1
    loaded = pumice.load(bytes(program))
    for sequences, rows in zip(counts, (7, 4, 64), strict=True):
        x = torch.randn(sequences, rows, 32)
        with torch.no_grad():
            torch.testing.assert_close(loaded(x), module(x), rtol=1e-5, atol=2e-5)


def test_quantized_layers() -> None:
    module = Ends(CUT["the first"]).eval()
    pumice.quantize(module, "int8")
    operators = check(module, torch.randn(2, 7, 32))
    assert operators["slice"] == 2 and operators["linear_q8csw"] >= 4


def test_rows_of_other_dimensions() -> None:
    """Through a permutation, a view and operands that broadcast; a batch of one image of two."""
    layer = nn.Linear(6, 6)

    def of(x: torch.Tensor) -> torch.Tensor:
        rows = layer(x.transpose(0, 1) * x.new_ones(5, 1, 6)).unflatten(-1, (2, 3)).permute(0, 2, 1, 3)
        return rows[:, :, 1]

    module = Function(lambda layer, x: of(x), layer)
    operators = check(module, torch.randn(4, 5, 6))
    assert "select" not in operators


def test_rows_that_are_weights_too() -> None:
    """Each row of x @ x.mT reads all rows of x."""
    operators = check(Function(lambda x: F.linear(x, x)[1]), torch.randn(6, 8))
    assert operators["select"] == 1 and "slice" not in operators


def test_root_mean_squares() -> None:
    """Of language models, in front of the last row's logits."""

    def of(up: nn.Linear, down: nn.Linear, x: torch.Tensor) -> torch.Tensor:
        x = x + down(F.silu(up(x * (x.pow(2).mean(-1, keepdim=True) + 1e-5).rsqrt())))
        return x[:, -1]

    operators = check(Function(of, nn.Linear(8, 24), nn.Linear(24, 8)), torch.randn(1, 5, 8))
    assert operators["slice"] == 1 and "select" not in operators


def test_means_over_rows_mix_them() -> None:
    layer = nn.Linear(8, 8)
    operators = check(
        Function(lambda layer, x: (layer(x) * x.mean(1, keepdim=True))[:, 0], layer), torch.randn(1, 5, 8)
    )
    assert operators["slice"] == 1
    operators = check(Function(lambda layer, x: layer(x).mean((0, 1), keepdim=True)[:, 0], layer), torch.randn(2, 5, 8))
    assert "slice" not in operators


def test_no_layer_no_change() -> None:
    """Sums alone are not worth a slice of each operand."""
    operators = check(Function(lambda x: (x + x.flip(0)).relu()[1]), torch.randn(4, 6))
    assert operators["select"] == 1 and "slice" not in operators
