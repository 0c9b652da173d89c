# SPDX-License-Identifier: Apache-2.0
"""Linears of 8-bit activations with values in textures, every family of kernels that has them forced, against fp64 of
the same integers. Those with integers that come out: test/cli/test_kernel.py, through the kernel tool."""

from __future__ import annotations

import pytest
import torch
from support.int8 import Layer, Weight

import pumice

FORCED = "storage=textures"
LAYERS = {  # and kernels: each compiles for seconds
    "q4 affine": (
        lambda: Layer(Weight.random(37, 96, 32, 4, zero=True), torch.randn(37), 1, True),
        ["tile32x64", "dotw8", "dot_tile32x64"],
    ),
    "q4 f16": (
        lambda: Layer(Weight.random(131, 128, 64, 4, dtype=torch.float16), None, dtype=torch.float16, mapping=1),
        ["dotw1"],
    ),
    "q8 tails": (
        lambda: Layer(Weight.random(38, 130, None, 8, zero=True), torch.randn(38), 0, True),
        ["dot_tile32x64"],
    ),
    "one scale for all rows": (lambda: Layer(Weight.random(20, 64, 32, 4), per_token=0), []),
}


@pytest.mark.parametrize("name", LAYERS)
def test_floats(monkeypatch, name) -> None:
    layer, kernels = LAYERS[name][0](), LAYERS[name][1]
    layer.check_rows(monkeypatch, kernels, (1, 5, 33), features=FORCED)
    x = torch.randn(33, layer.weight.q.shape[1]).to(layer.dtype)
    other = [torch.randn(33, layer.weight.q.shape[0])] if layer.residual else []
    for kernel in ("gemv1", *kernels):
        monkeypatch.setenv("PUMICE_KERNEL", kernel)
        session = pumice.load(layer.program(), features=FORCED)
        names = [row.kernel for row in session.profile(x, *other)]
        assert any(name.startswith("linear_quantize") and "texture3d" in name for name in names)
        assert any("texture2d" in name for name in names) and session.memory["textures"] > 0
    monkeypatch.setenv("PUMICE_KERNEL", "")
    layer.check(pumice.load(layer.program(), features=f"{FORCED},none")(x, *other), x, *other)


@pytest.mark.parametrize("kernel", ["dot1", "int8_32x32", "int8g_32x32"])
def test_a_kernel_that_reads_buffers_says_so(kernel) -> None:
    layer = Layer(Weight.random(32, 64, 32 if "g" in kernel else None, 8))
    with pytest.raises(pumice.InvalidInputError, match=r"reads .*from (a )?buffer"):
        pumice.load(layer.program(), features=f"{FORCED},kernel={kernel}")


@pytest.mark.parametrize("group", [None, 32])
def test_weights_in_parts(group) -> None:
    """A texture with several rows, packed in ranges; scales and sums are read in ranges, too."""
    layer = Layer(Weight.random(1300, 1024, group, 8, zero=True), torch.randn(1300))
    x = torch.randn(20, 1024)
    for features in ("kernel=dot_tile32x64", "none"):
        layer.where = features
        layer.check(pumice.load(layer.program(), features=f"{FORCED},{features},max_storage=110000")(x), x)
