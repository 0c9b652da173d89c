# SPDX-License-Identifier: Apache-2.0
"""A linear layer with any number of rows, through every kernel, against fp64."""

from __future__ import annotations

import torch

import pumice
from support.quantized import check_linear

# Every kernel by name; "" is the one that is picked. Names: ops/linear/pick.cpp.
ALL = [
    "",
    "gemv1",
    "gemv2",
    "gemv4",
    "gemv8",
    "gemv1x2",
    "gemv2x2",
    "gemv4x2",
    "gemvr1",
    "gemvr2",
    "gemvr4",
    "gemvr8",
    "gemvr1x2",
    "tile128x128",
    "tile64x128",
    "tile64x64",
    "tile32x64",
]


FEW = ["gemv1", "gemv8", "gemv4x2", "gemvr8", "tile64x128"]  # for the many shapes of weights


ROWS = [1, 2, 3, 5, 8, 17, 33, 129]


def check_rows(
    monkeypatch, layer: torch.nn.Linear, operator: str, kernels=FEW, rows=(1, 9, 65), make=torch.randn
) -> None:
    """The layer with any number of rows, through every kernel, against fp64 of the same weights; twice, bit for bit."""
    dtype = layer.weight.dtype
    width = layer.weight.shape[1]
    example = torch.zeros(5, width, dtype=dtype)
    dims = ({0: torch.export.Dim("m", min=0, max=4096)},)
    program = pumice.export(layer, (example,), dynamic_shapes=dims)
    assert program.report.operators == {operator: 1}
    data = bytes(program)
    torch.manual_seed(7)
    inputs = [make(m, width).to(dtype) for m in rows]
    for kernel in kernels:
        monkeypatch.setenv("PUMICE_KERNEL", kernel)
        session = pumice.load(data)
        for x in inputs:
            got = session(x)
            check_linear(got, x, layer, f"{kernel} with {x.shape[0]} rows")
        assert torch.equal(got, session(x)), f"{kernel}: a replay gave other bits"
    assert session(inputs[0][:0]).shape == (0, layer.weight.shape[0])
