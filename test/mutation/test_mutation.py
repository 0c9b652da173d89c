# SPDX-License-Identifier: Apache-2.0
"""Mistakes that are planted into kernels are found by the kernels' own tests: a part of `./dev mutate`."""

from __future__ import annotations

import re
import sys

import pytest
from support.command_line import BIN, ROOT

FEW = ["pick", "gemv4x2", "tile32x64", "matrix32x32", "dot2", "dot_tile32x64", "conv_tiled", "conv_direct"]
LONG = "m=9,n=37,k=16384,g=32,bias=1"  # the longest sums of the models that are benchmarked


@pytest.fixture
def mutation():
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        from setup import mutation
    finally:
        sys.path.pop(0)
    return mutation


@pytest.mark.parametrize(
    "op", ["linear", "linear_q4gsw", "linear_q8csw", "linear_dq8ca_q4gsw", "q8ta_linear", "conv2d", "q8ta_conv2d"]
)
def test_products(mutation, op, capsys, monkeypatch) -> None:
    monkeypatch.setattr(mutation, "SHORT", {name: f"m=9,{text}" for name, text in mutation.SHORT.items()})
    kernels = [name for name in FEW if name.startswith("conv") == ("conv" in op) or name == "pick"]
    if op[:6] == "linear" and "dq8" not in op:
        kernels = [name for name in kernels if not name.startswith("dot")]
    assert mutation.Mutation([BIN / "pumice-rt"], kernels, [op], LONG).run(), capsys.readouterr().out


@pytest.mark.parametrize(
    "op", ["softmax", "matmul", "sdpa", "cached_attention_int8", "layer_norm", "quantize", "q8ta_add"]
)
def test_calls(mutation, op, capsys) -> None:
    assert mutation.Mutation([BIN / "pumice-rt"], [], [op]).run(), capsys.readouterr().out
    assert " 0 not found" in capsys.readouterr().out


def test_a_mistake_that_is_not_found_is_named(mutation, capsys, monkeypatch) -> None:
    """The shader of relu rounds in a branch that does not run."""
    monkeypatch.setattr(mutation, "ROUNDED", re.compile("relu"))
    assert not mutation.Mutation([BIN / "pumice-rt"], [], ["relu"]).run()
    out = capsys.readouterr().out
    assert "not found: rounding: relu" in out and "1 not found" in out
