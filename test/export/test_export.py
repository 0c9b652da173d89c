# SPDX-License-Identifier: Apache-2.0
"""pumice.export as a user meets it: what goes in, the report, refusals, nesting, state, dynamic shapes."""

from __future__ import annotations

import dataclasses
import json
import re
from collections import namedtuple

import pytest
import torch
from support.budget import MATMUL
from support.graphs import Function
from support.missing import missing
from torch import nn

import pumice
from pumice.format import ir
from pumice.format.ir import SizeExpr, ValueKind

X = torch.randn(4, 6, generator=torch.Generator().manual_seed(0))
Dim = torch.export.Dim


class NoDefaults(nn.Module):
    def forward(self, x, y):
        return x + y * 2.0


class Plain(nn.Module):
    def forward(self, x, y, *, scale: float = 2.0):
        return x + y * scale


def method(program: pumice.Program) -> ir.Method:
    return program.ir.methods[0]


def test_module_exported_program_and_saved_program_give_the_same_bytes(tmp_path) -> None:
    module, args = NoDefaults().eval(), (X, X)
    captured = torch.export.export(module, args)
    torch.export.save(captured, tmp_path / "m.pt2")
    want = bytes(pumice.export(module, args))
    for other in (captured, str(tmp_path / "m.pt2"), tmp_path / "m.pt2"):
        program = pumice.export(other)
        assert [v.name for v in map(method(program).values.__getitem__, method(program).inputs)] == ["x", "y"]
    assert bytes(pumice.export(captured)) == want == bytes(pumice.export(module, args))


def test_defaults_of_forward_are_all_that_only_the_module_has() -> None:
    module, args = Plain().eval(), (X, X)
    captured = torch.export.export(module, args)
    direct = pumice.export(module, args)
    assert bytes(direct) == bytes(pumice.export(module, args))
    # torch does not keep forward's defaults
    assert json.loads(method(direct).in_spec)["defaults"] == [["scale", {"c": 2.0}]]
    method(direct).in_spec = method(pumice.export(captured)).in_spec
    assert bytes(pumice.export(captured)) == bytes(direct)


def test_save_is_whole_or_not_at_all(tmp_path) -> None:
    program = pumice.export(Plain(), (X, X))
    program.save(tmp_path / "m.pumice")
    assert (tmp_path / "m.pumice").read_bytes() == bytes(program)
    assert [path.name for path in tmp_path.iterdir()] == ["m.pumice"]
    with pytest.raises(pumice.Error, match="nowhere") as caught:
        program.save(tmp_path / "nowhere" / "m.pumice")
    assert caught.value.code == "IoError"


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: pumice.export(42), pumice.InvalidInputError, "int"),
        (lambda: pumice.export("missing.pt2"), pumice.InvalidInputError, "missing.pt2"),
        (
            lambda: pumice.export(torch.export.export(Plain(), (X, X)), (X,)),
            pumice.InvalidInputError,
            "exported program already",
        ),
        (lambda: pumice.export(Plain(), X), pumice.InvalidInputError, "tuple"),
        (lambda: pumice.export(Plain(), (X,)), pumice.UnsupportedError, "Plain"),
        (
            lambda: pumice.export(Plain(), (X, X), options={"strickt": True}),
            pumice.InvalidInputError,
            "did you mean 'strict'",
        ),
        (lambda: pumice.ExportOptions(bf16="f23"), pumice.InvalidInputError, "f32"),
    ],
)
def test_bad_arguments(call, error, message) -> None:
    with pytest.raises(error, match=message):
        call()


def test_strict_capture() -> None:
    assert pumice.export(Plain(), (X, X), options=pumice.ExportOptions(strict=True)).report.operators


class Refused(nn.Module):
    def forward(self, x):
        a = missing(x)
        b = missing(x + 1).abs()
        return a.sum(), b


def test_every_refusal_has_a_reason_and_a_line() -> None:
    with pytest.raises(pumice.UnsupportedError) as caught:
        pumice.export(Refused(), (torch.eye(4),))
    reasons = caught.value.reasons
    assert len(reasons) >= 2
    lines = {reason.source.code.split("=")[0].strip() for reason in reasons}
    assert {"a", "b"} <= lines
    assert all(reason.source.file.endswith("test_export.py") and reason.source.line > 0 for reason in reasons)
    assert all(reason.reason and str(reason) in str(caught.value.report) for reason in reasons)
    assert json.loads(caught.value.report.to_json())["refusals"][0]["source"]["line"] > 0


@pytest.mark.parametrize(
    ("function", "args", "message"),
    [
        (lambda x: x.add_(1), (X,), "writes into its input.*input_updates"),
        (lambda x: x.double() + 1, (X,), "float64"),
        (lambda x: (x.shape[0], x), (X,), None),
        (lambda x: x + torch.tensor(2**40), (X.long(),), str(2**40)),
        (lambda x: x + 2**40, (X.long(),), str(2**40)),
        (lambda x: x.nonzero(), (X,), "u0|nonzero"),
        (lambda x: torch.cond(x.sum() > 0, lambda y: y + 1, lambda y: y - 1, (x,)), (X,), "cond"),
        (lambda x: torch.fft.fft(x), (X,), "complex.default: .*view_as_real"),
    ],
)
def test_refusals(e2e, function, args, message) -> None:
    if message is None:
        assert pumice.export(Function(function), args)
    else:
        e2e.refuses(Function(function), *args, match=message)


def test_a_symbolic_size_as_a_result_is_refused(e2e) -> None:
    e2e.refuses(Function(lambda x: (x.shape[0], x + 1)), X, match="is a size", dynamic_shapes=(({0: Dim("n")},),))


def test_the_report_tells_what_became_of_every_node() -> None:
    program = pumice.export(
        pumice.quantize(nn.Sequential(nn.Linear(64, 32), nn.Dropout(), nn.ReLU()).eval(), "int4"), (torch.randn(3, 64),)
    )
    statuses = {row.target: row.status for row in program.report.rows}
    assert statuses["torchao.dequantize_affine.default"] == "fused"
    assert statuses["aten.linear.default"] == "fused" and statuses["aten.relu.default"] == "runs"
    assert program.report.operators["linear_q4gsw"] == 1
    text = str(program.report)
    assert "linear_q4gsw" in text and "fused" in text and "refused" not in text
    assert json.loads(program.report.to_json())["counts"]["fused"] == 2


Pair = namedtuple("Pair", ["first", "second"])


def test_nesting_of_arguments_and_results(e2e) -> None:
    class Nested(nn.Module):
        def forward(self, x, cache, *, flag=True, none=None):
            y = x + cache["k"][0] if flag else x
            return {
                "y": y,
                "pair": Pair(y * 2, (x, [cache["k"][1]])),
                "number": 3,
                "none": None,
                "same": y,
                "constant": torch.tensor([1.0, 2.0]),
            }

    cache = {"k": [torch.randn(4, 6), torch.randn(2)]}
    program = e2e.check(Nested(), X, cache, kwargs={"flag": True, "none": None}, runs=[(X + 1, cache)])
    values, m = method(program).values, method(program)
    assert [values[i].name for i in m.inputs] == ["x", "cache.k.0", "cache.k.1"]
    assert [values[i].name for i in m.outputs] == [
        "y",
        "pair.first",
        "pair.second.0",
        "pair.second.1.0",
        "same",
        "constant",
    ]
    assert len(set(m.outputs)) == len(m.outputs)


def test_an_input_that_nobody_uses_is_still_an_input(e2e) -> None:
    e2e.check(Function(lambda x, unused: x + 1), X, torch.zeros(3, dtype=torch.int64))


class Stateful(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.tensor([3]))
        self.register_buffer("last", torch.zeros(4, 6))

    def forward(self, x):
        before = self.last.clone()
        self.count.add_(1)
        self.last.copy_(x)
        return before, x * self.count


def test_state(e2e) -> None:
    program = e2e.check(Stateful(), X, runs=[(X + 1,), (X - 1,)])
    states = {state.key: state.constant for state in program.ir.states}
    assert states["last"] == -1, "zeros are not written"
    assert program.ir.constants[states["count"]].data() == (3).to_bytes(8, "little")
    m = method(program)
    assert [m.values[state].kind for state, _ in m.updates] == [ValueKind.state] * 2
    session = pumice.load(bytes(program))
    first = session(X)
    session(X)
    session.reset()
    assert all(torch.equal(a, b) for a, b in zip(session(X), first, strict=True))


def test_dynamic_shapes(e2e) -> None:
    def function(x, y):
        z = torch.cat([x, y]).reshape(-1, 2)
        return z * 2, z[: x.shape[0]]

    rows, more = Dim("rows", min=2, max=9), Dim("more", min=2, max=20)
    shapes = (({0: rows}, {0: more}),)
    runs = [(torch.randn(n, 6), torch.randn(m, 6)) for n, m in ((2, 2), (9, 20), (5, 3))]
    program = e2e.check(Function(function), X, torch.randn(3, 6), dynamic_shapes=shapes, runs=runs)
    m = method(program)
    assert {(s.min, s.max) for s in m.symbols} == {(2, 9), (2, 20)}
    assert isinstance(m.values[m.outputs[0]].dims[0], SizeExpr)


def test_dynamic_dimensions_have_the_users_names() -> None:
    program = pumice.export(Plain(), (X, X), dynamic_shapes={"x": {0: Dim("rows")}, "y": {0: Dim("rows")}})
    assert [symbol.name for symbol in method(program).symbols] == ["rows"]


def test_sizes_that_are_multiples(e2e) -> None:
    """Images of [16 * height, 16 * width + 3]."""
    module = nn.Sequential(nn.Conv2d(3, 5, 3, 2, 1), nn.ReLU(), nn.Conv2d(5, 4, 3, 2, 1)).eval()
    height, width = Dim("height", min=1, max=8), Dim("width", min=1, max=4)
    shapes = ({2: 16 * height, 3: 16 * width + 3},)
    runs = [(torch.randn(1, 3, 16 * h, 16 * w + 3),) for h, w in ((1, 1), (8, 4), (3, 2))]
    program = e2e.check(module, torch.randn(1, 3, 32, 35), dynamic_shapes=shapes, runs=runs, budget=MATMUL)
    assert {(s.name, s.min, s.max, s.hint) for s in method(program).symbols} == {
        ("height", 1, 8, 2),
        ("width", 1, 4, 2),
    }
    assert program.ir.required_features == ["affine_inputs"]
    session = pumice.load(bytes(program))
    for wrong, text in (
        ((40, 35), "dimension 2 is 40, expected 16 * 'height' with 'height' from 1 to 8"),
        ((144, 35), "dimension 2 is 144, expected 16"),
        ((32, 32), "dimension 3 is 32, expected 16 * 'width' + 3 with 'width' from 1 to 4"),
        ((32, 3), "dimension 3 is 3, expected 16"),
        ((0, 19), "dimension 2 is 0, expected 16"),
    ):
        with pytest.raises(pumice.InvalidInputError, match=re.escape(text)):
            session(torch.randn(1, 3, *wrong))
    session(torch.randn(1, 3, 48, 19))


def test_bf16_becomes_f32_or_f16_and_the_report_says_so() -> None:
    module = nn.Linear(8, 4).to(torch.bfloat16)
    args = (torch.randn(2, 8, dtype=torch.bfloat16),)
    for options, dtype in ((None, ir.DType.f32), ({"bf16": "f16"}, ir.DType.f16)):
        program = pumice.export(module, args, options=options)
        assert {value.dtype for value in method(program).values} == {dtype}
        assert any("bfloat16" in note and dtype.name in note for note in program.report.notes)


def test_a_transposed_weight_is_written_once_and_as_it_is() -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Parameter(torch.randn(20, 6))

        def forward(self, x, ids):
            return x @ self.table.t(), nn.functional.embedding(ids, self.table)

    program = pumice.export(Tied(), (X, torch.tensor([1, 2])))
    assert [constant.key for constant in program.ir.constants] == ["table"]


@dataclasses.dataclass
class Boxes:
    first: torch.Tensor
    second: torch.Tensor


torch.export.register_dataclass(Boxes, serialized_type_name="test_export.Boxes")


def test_dataclasses_in_and_out() -> None:
    class Model(nn.Module):
        def forward(self, boxes):
            return Boxes(boxes.second + 1, boxes.first)

    session = pumice.load(bytes(pumice.export(Model(), (Boxes(X, X + 1),))))
    assert [spec.name for spec in session.inputs] == ["boxes.first", "boxes.second"]
    for given in (Boxes(X, X + 1), {"first": X, "second": X + 1}):
        got = session(given)
        assert torch.equal(got.first, X + 1 + 1) and torch.equal(got["second"], X)


def test_a_type_whose_nesting_cannot_be_written_is_refused() -> None:
    class Opaque:
        pass

    with pytest.raises(pumice.UnsupportedError):
        pumice.export(Plain(), (Opaque(), X))


def test_what_a_weight_may_not_hold_is_a_refusal_when_the_file_is_written() -> None:
    module = pumice.quantize(nn.Linear(64, 4), "int4")
    with torch.no_grad():
        module.weight.qdata[0, 0] = 100
    with pytest.raises(pumice.UnsupportedError, match="100"):
        bytes(pumice.export(module, (torch.randn(2, 64),)))
