# SPDX-License-Identifier: Apache-2.0
"""Convolutions between operators that have their values in textures, over odd sizes."""

from __future__ import annotations

import json

import pytest
import torch
from support.command_line import BIN, run
from support.conv import CASES, Case, sums_of
from support.many import FLOATS
from support.quantized import check_product
from torch import nn
from torch.ao.quantization.fx import _decomposed  # noqa: F401 (registers torch.ops.quantized_decomposed)

import pumice

FORCED = "storage=textures"
q = torch.ops.quantized_decomposed


class Between(nn.Module):
    def __init__(self, layers: list[nn.Module]) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)

    def forward(self, *inputs: torch.Tensor) -> list[torch.Tensor]:
        return [torch.abs(layer(torch.neg(x))) for layer, x in zip(self.layers, inputs, strict=True)]


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_floats(dtype) -> None:
    torch.manual_seed(1)
    cases = [CASES[i] for i in ((0, 1, 3, 6, 8, 10) if dtype is torch.float32 else (4, 9))]
    layers = [*(case.module() for case in cases), nn.ConvTranspose2d(17, 34, 3, 2, 1, 1)]
    inputs = [*(case.x(dtype) for case in cases), torch.randn(1, 17, 5, 7).to(dtype)]
    module = Between([layer.to(dtype) for layer in layers]).eval()
    session = pumice.load(bytes(pumice.export(module, tuple(inputs))), features=FORCED)
    ran = [row.kernel for row in session.profile(*inputs) if row.kernel.startswith("conv2d")]
    assert len(ran) == len(layers) and all("texture3d" in name for name in ran), ran
    for layer, x, got in zip(layers, inputs, session(*inputs), strict=True):
        check_product(got, sums_of(layer, torch.neg(x)).then(torch.abs), 4, f"{layer} of {list(x.shape)}")


class Integers(nn.Module):
    """As PT2E makes it, between floats: 8-bit weights, and for the operators that take or give integers, those."""

    def __init__(self, op: str, case: Case, dtype: torch.dtype) -> None:
        super().__init__()
        self.op, self.case = op, case
        self.numbers = (0, 255, torch.uint8) if dtype is torch.uint8 else (-128, 127, torch.int8)
        weight = torch.randint(-128, 128, case.module().weight.shape).to(torch.int8)
        self.register_buffer("weight", weight)
        self.register_buffer("scale", torch.rand(case.out) * 0.02 + 0.001)
        self.register_buffer("zero", torch.zeros(case.out, dtype=torch.int64))

    def rounded(self, x: torch.Tensor, scale: float, zero: int) -> torch.Tensor:
        return q.dequantize_per_tensor(q.quantize_per_tensor(x, scale, zero, *self.numbers), scale, zero, *self.numbers)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        case = self.case
        weight = q.dequantize_per_channel(self.weight, self.scale, self.zero, 0, -128, 127, torch.int8)
        x = torch.neg(x) if self.op == "conv2d_q8csw" else self.rounded(x, 0.02, 5)
        y = nn.functional.conv2d(x, weight, None, case.stride, case.padding, case.dilation, case.groups)
        return self.rounded(y, 0.11, 9) if self.op == "q8ta_conv2d" else torch.abs(y)


@pytest.mark.parametrize(
    ("op", "dtype"),
    [
        ("q8ta_conv2d", torch.int8),
        ("q8ta_conv2d", torch.uint8),
        ("conv2d_q8ta_q8csw", torch.int8),
        ("conv2d_q8csw", torch.int8),
    ],
    ids=str,
)
def test_integers(op, dtype) -> None:
    """The same bits as in buffers."""
    torch.manual_seed(2)
    for case in [CASES[i] for i in ((0, 9) if dtype is torch.int8 else (3,))]:
        x = case.x()
        program = pumice.export(Integers(op, case, dtype).eval(), (x,))
        assert program.report.operators[op] == 1
        sessions = [pumice.load(bytes(program), features=f"storage={each}") for each in ("buffers", "textures")]
        assert torch.equal(sessions[0](x), sessions[1](x)), case
        assert any(row.kernel.startswith("conv2d") and "texture3d" in row.kernel for row in sessions[1].profile(x))


@pytest.mark.parametrize("op", ["conv2d", "conv2d_q8csw", "conv2d_q8ta_q8csw", "q8ta_conv2d"])
@pytest.mark.parametrize("storage", ["buffer", "texture3d"])
def test_kernels_of_each_storage(op: str, storage: str) -> None:
    """All that need no matrix units, of a dense convolution and a depthwise one."""
    cases = ("--case", "b=1,c=16,o=20,h=9,w=8,k=3", "--case", "b=1,c=16,o=16,h=9,w=8,k=3,g=16", "--storage", storage)
    kernels = (word for name in ("conv_direct", "conv_depthwise", "conv_tiled") for word in ("--kernel", name))
    command = (BIN / "pumice-rt", "kernel", "test", "--op", op, *cases, *kernels, "--replays", "1", "--json")
    statuses = [row["status"] for row in json.loads(run(*command).stdout)["rows"]]
    assert statuses.count("ok") >= 2 and set(statuses) <= {"ok", "skipped"}
