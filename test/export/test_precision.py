# SPDX-License-Identifier: Apache-2.0
"""ExportOptions(precision=...): what may be given, and "fp16" against eager in fp16. "fp32" against "split":
test/ops/test_split_operands.py."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

import pumice
from pumice.format.join import join

ROWS = {0: torch.export.Dim("rows", min=1, max=50)}


class Net(nn.Module):
    """What half() changes and what it does not: integers, an upcast in a norm, a state, results of several dtypes."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(1 + torch.randn(64) / 8)
        self.register_buffer("count", torch.zeros(1))
        self.embed, self.norm = nn.Embedding(10, 64), nn.LayerNorm(64)
        self.up, self.down = nn.Linear(64, 128), nn.Linear(128, 64)

    def forward(self, x: torch.Tensor, ids: torch.Tensor, *, scale: float = 1.0) -> dict[str, torch.Tensor]:
        y = x.float()
        y = self.weight * (y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype)
        y = self.down(nn.functional.gelu(self.up(self.norm(y + self.embed(ids))))) * scale
        self.count.add_(1)
        return {"y": y, "x": x, "fp32": y.float(), "fp16": y.half(), "above": x > 0, "count": self.count * 2}


def test_fp16_is_what_eager_computes_in_fp16() -> None:
    torch.manual_seed(1)
    module = Net().eval().requires_grad_(False)
    half, kept = copy.deepcopy(module).half(), copy.deepcopy(module.state_dict())
    x, ids = 50000 * torch.rand(3, 64), torch.tensor([1, 5, 9])
    options = pumice.ExportOptions(precision="fp16")
    program = pumice.export(module, (x, ids), dynamic_shapes={"x": ROWS, "ids": ROWS}, options=options)
    assert all(torch.equal(kept[name], value) for name, value in module.state_dict().items())

    session = pumice.load(bytes(program))
    assert session.precision == "fp16" and [spec.dtype for spec in session.inputs] == ["float32", "int64"]
    facts = pumice.inspect(bytes(program))
    sizes = {constant["key"]: constant["bytes"] for constant in facts["constants"]}
    assert sizes["up.weight"] == 2 * 64 * 128 and facts["header"]["precision"] == "fp16"
    dtypes = {row.operators[0]: row.dtype for row in program.report.rows if row.operators}
    assert dtypes["linear"] == dtypes["layer_norm"] == dtypes["rms_norm"] == "float16"
    assert any("fp16" in note for note in program.report.notes)

    for _ in range(2):  # the state moves on
        want, own = half(x.half(), ids), module(x, ids)
        got = session(x, ids)
        assert {name: value.dtype for name, value in got.items()} == {name: value.dtype for name, value in own.items()}
        for name in ("x", "above", "count"):
            assert torch.equal(got[name], want[name].to(got[name].dtype)), name
        for name in ("y", "fp32", "fp16"):  # roundings to 11 bits, of a sum of 128 and what goes into it
            torch.testing.assert_close(got[name].double(), want[name].double(), rtol=2**-9, atol=2**-9)
        assert torch.equal(got["y"], got["fp16"].float()) and not torch.allclose(got["y"], own["y"], 1e-6, 1e-6)


@pytest.mark.parametrize("scheme", ["int4", "int8"])
def test_fp16_of_quantized_weights(scheme) -> None:
    torch.manual_seed(2)
    module, x = nn.Sequential(nn.Linear(64, 96), nn.ReLU(), nn.Linear(96, 33)).eval(), torch.randn(4, 64)
    pumice.quantize(module, scheme)
    program = pumice.export(module, (x,), options={"precision": "fp16"})
    assert {row.dtype for row in program.report.rows if "linear" in row.detail} == {"float16"}
    with torch.no_grad():
        torch.testing.assert_close(pumice.load(bytes(program))(x), module(x), rtol=2**-8, atol=2**-8)


class Writes(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x.mul_(1.0009765625)  # 1 + 2^-10, the least above 1 in fp16
        return x + 0


def test_fp16_of_a_written_input() -> None:
    options = {"precision": "fp16", "input_updates": True}
    session = pumice.load(bytes(pumice.export(Writes(), (torch.ones(3),), options=options)))
    want = torch.ones(3, dtype=torch.float16)
    for _ in range(3):
        want = want * 1.0009765625
    assert torch.equal(session.run(torch.ones(3), steps=3), want.float())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"precision": "fp64"}, "known: fp16, fp32, split"),
        ({"precision": "half"}, "known: fp16, fp32, split"),
        ({"precision": torch.float16}, "known: fp16, fp32, split"),
        ({"precision": None}, "known: fp16, fp32, split"),
        ({"precision": "fp16", "weights": {"weight": lambda: torch.ones(3, 8)}}, "leave weights out"),
    ],
)
def test_refused(options, message) -> None:
    with pytest.raises(pumice.InvalidInputError, match=message) as caught:
        pumice.export(nn.Linear(8, 3), (torch.ones(2, 8),), options=options)
    assert caught.value.code == "InvalidArgument"


def test_models_that_fp16_is_not_for() -> None:
    module, x = nn.Linear(8, 3).eval(), torch.ones(2, 8)
    with pytest.raises(pumice.InvalidInputError, match=r"needs the torch.nn.Module.*module.half\(\)"):
        pumice.export(torch.export.export(module, (x,)), options={"precision": "fp16"})
    integers = pumice.quantize(nn.Sequential(module).eval(), "static8", calibration=[(x,)])
    with pytest.raises(pumice.UnsupportedError, match=r"linear.default of torch.float16 and torch.float32"):
        pumice.export(integers, (x,), options={"precision": "fp16"})
    with pytest.raises(pumice.UnsupportedError, match=r"test_precision.py:\d+: aten.matmul.default of torch"):

        class Mixed(nn.Module):
            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return x @ torch.eye(8)

        pumice.export(Mixed(), (x,), options={"precision": "fp16"})


def test_methods_of_one_file_have_one_precision() -> None:
    fp32, split = (
        pumice.export(nn.Linear(8, 3), (torch.ones(2, 8),), options={"precision": each}).ir
        for each in ("fp32", "split")
    )
    assert join({"a": fp32}).precision is fp32.precision
    with pytest.raises(pumice.InvalidInputError, match="method 'b' is split, those before fp32"):
        join({"a": fp32, "b": split})
