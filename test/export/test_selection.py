# SPDX-License-Identifier: Apache-2.0
"""The walk from outputs to inputs and what `Call` checks, with made-up operators and records."""

from __future__ import annotations

import pytest
import torch
from support.graphs import Function

import pumice
from pumice.format import ir
from pumice.format.ir import DType
from pumice.lowering import optable, selection, signature
from pumice.lowering.optable import Signature
from pumice.lowering.report import Report
from pumice.passes import storage

aten = torch.ops.aten
X = torch.randn(4, 6, generator=torch.Generator().manual_seed(0))
Dim = torch.export.Dim


@pytest.fixture
def world(monkeypatch):
    """world(records, {name: (params, what it takes)})(function, *args) exports with these only."""

    def make(records, operators):
        table = {(name, 1): Signature.parse(name, 1, *facts) for name, facts in operators.items()}
        for module in (signature, storage):
            monkeypatch.setattr(module, "op_table", lambda: table)
        monkeypatch.setattr(selection, "lowering_for", records.get)
        monkeypatch.setattr(pumice.lowering.registry, "targets", lambda: list(records))

        def run(function, *args, **more) -> pumice.Program:
            more.setdefault("options", {"without_fusion": ("elementwise_chain",)})  # of operators that are not there
            return pumice.export(Function(function), args, **more)

        return run

    return make


UNARY = ("Tensor x -> Tensor", {"tensors": ["f32", "f16"]})


def emit(name, *arguments):
    return lambda call: call.emit(name, *(call[argument] for argument in arguments))


def statuses(report: Report) -> dict[str, str]:
    return {row.node: row.status for row in report.rows}


def test_a_record_that_looks_through_its_input_fuses_it(world) -> None:
    def relu(call):
        before = call.producer(call.tensor("self"), aten.exp.default, single_use=True)
        call.emit("exp_relu" if before else "relu", (before or call).tensor("self"))

    records = {
        aten.relu.default: relu,
        aten.exp.default: emit("exp", "self"),
        aten.add.Tensor: emit("add", "self", "other"),
    }
    run = world(records, {"relu": UNARY, "exp": UNARY, "exp_relu": UNARY, "add": ("Tensor a, Tensor b -> Tensor", {})})
    alone = run(lambda x: x.exp().relu(), X)
    assert alone.report.operators == {"exp_relu": 1} and statuses(alone.report) == {"exp": "fused", "relu": "runs"}
    shared = run(lambda x: (lambda y: y.relu() + y)(x.exp()), X)
    assert shared.report.operators == {"exp": 1, "relu": 1, "add": 1}
    assert [call.op for call in shared.ir.methods[0].ops] == ["exp", "relu", "add"], "in the order of the graph"


def test_what_was_looked_through_and_is_needed_elsewhere_runs_too(world) -> None:
    records = {
        aten.relu.default: lambda call: call.emit(
            "relu", call.producer(call.tensor("self"), aten.exp.default).tensor("self")
        ),
        aten.exp.default: emit("exp", "self"),
    }
    program = world(records, {"relu": UNARY, "exp": UNARY})(lambda x: (lambda y: (y.relu(), y))(x.exp()), X)
    assert statuses(program.report) == {"exp": "runs", "relu": "runs"}


def test_steps_with_temporaries_views_casts_and_constants(world) -> None:
    def relu(call):
        x = call.tensor("self")
        half = call.cast(x, DType.f16)
        flat = call.view(half, [24])
        table = call.constant("table", DType.i4, [2, 3], lambda: torch.tensor([[1, 2, 3], [4, 5, -8]]))
        again = call.constant("table", DType.i4, [2, 3], lambda: None)
        result = call.emit("steps", flat, table, again, out=call.temp(DType.f16, [24]))
        call.emit("cast", call.view(result, x.shape), torch.float32)

    operators = {
        "cast": ("Tensor x, dtype dtype -> Tensor", {}),
        "view": ("Tensor x, sizes shape -> Tensor", {}),
        "steps": ("Tensor x, Tensor a, Tensor b -> Tensor", {}),
    }
    program = world({aten.relu.default: relu}, operators)(lambda x: x.relu(), X)
    method = program.ir.methods[0]
    assert [call.op for call in method.ops] == ["cast", "view", "steps", "view", "cast"]
    assert len(program.ir.constants) == 1 and program.ir.constants[0].data() == bytes([0xA9, 0x0B, 0xDC, 0x00])
    assert method.ops[0].args == [ir.ValueId(method.inputs[0]), DType.f16]


CALLS = [
    (("nothing", "self"), "there is no operator 'nothing'"),
    (("unary", "self", 1), "takes 1 arguments, got 2"),
    (("unary",), "'x' is missing"),
    (("unary", 1.0), "'x' must be a tensor"),
    (("whole", "self", 1.5), "'n' must be an integer, got 1.5"),
    (("whole", "self", True), None),
    (("whole", "self", 2**70), "beyond 64 bits"),
    (("real", "self", 3), None),
    (("real", "self", "3"), "'f' must be a number"),
    (("flag", "self", 1), "'b' must be true or false"),
    (("kind", "self", 6), "'d' must be a dtype"),
    (("kind", "self", torch.int64), None),
    (("kind", "self", torch.complex64), "complex64"),
    (("either", "self", 2**40), f"is {2**40}, which does not fit"),
    (("either", "self", float("inf")), None),
    (("sizes", "self", 3), "'s' must be a list"),
    (("sizes", "self", [1, -2]), None),
    (("maybe", "self"), None),
    (("many", ["self", "self"]), None),
    (("many", ["self", None]), "'xs' must be a tensor"),
]
OPERATORS = {
    "unary": UNARY,
    "whole": ("Tensor x, int n -> Tensor", {}),
    "real": ("Tensor x, float f -> Tensor", {}),
    "flag": ("Tensor x, bool b -> Tensor", {}),
    "kind": ("Tensor x, dtype d -> Tensor", {}),
    "either": ("operand a, operand b -> Tensor", {}),
    "sizes": ("Tensor x, sizes s -> Tensor", {}),
    "maybe": ("Tensor x, Tensor? y -> Tensor", {}),
    "many": ("Tensors xs -> Tensor", {}),
}


@pytest.mark.parametrize(("arguments", "message"), CALLS, ids=[f"{c[0][0]}-{c[1]}" for c in CALLS])
def test_an_emitted_call_is_checked_against_the_signature(world, arguments, message) -> None:
    def relu(call):
        x = call.tensor("self")
        given = [
            x if a == "self" else [x if i == "self" else i for i in a] if isinstance(a, list) else a
            for a in arguments[1:]
        ]
        call.emit(arguments[0], *given)

    run = world({aten.relu.default: relu}, OPERATORS)
    if message is None:
        assert arguments[0] in [call.op for call in run(lambda x: x.relu(), X).ir.methods[0].ops]
        return
    with pytest.raises(pumice.UnsupportedError, match=message):
        run(lambda x: x.relu(), X)


@pytest.mark.parametrize(
    ("dtype", "accepts", "accepted"),
    [
        (torch.float32, {"tensors": ["f32"]}, True),
        (torch.float16, {"tensors": ["f32"]}, False),
        (torch.int64, {"tensors": ["i32", "i64"]}, True),
        (torch.int64, {"tensors": ["i64"], "results": ["i32"]}, False),
        (torch.int8, {"results": ["u8"]}, False),
        (torch.bool, {"tensors": ["i32", "bool"]}, True),
        (torch.bool, {"tensors": ["u8"]}, False),
        (torch.bool, {}, True),
    ],
)
def test_accepted_means_there_is_a_shader_for_it(world, dtype, accepts, accepted) -> None:
    run = world(
        {aten.neg.default: emit("op", "self"), aten.logical_not.default: emit("op", "self")},
        {"op": ("Tensor x -> Tensor", accepts)},
    )
    function = (lambda x: x.logical_not()) if dtype == torch.bool else (lambda x: -x)
    if accepted:
        assert run(function, X.to(dtype)).report.operators == {"op": 1}
    else:
        with pytest.raises(pumice.UnsupportedError, match="no variant for"):
            run(function, X.to(dtype))


def test_a_decision_that_holds_for_the_example_only_is_refused(world) -> None:
    def relu(call):
        x = call.tensor("self")
        call.emit("unary" if x.shape[0] == 4 else "whole", x)

    run = world({aten.relu.default: relu}, OPERATORS)
    assert run(lambda x: x.relu(), X).report.operators == {"unary": 1}
    with pytest.raises(pumice.UnsupportedError, match="only for some input sizes"):
        run(lambda x: x.relu(), X, dynamic_shapes=(({0: Dim("n", min=2, max=9)},),))


def test_a_size_where_a_number_must_be_fixed_is_refused(world) -> None:
    run = world({aten.relu.default: lambda call: call.emit("whole", call.tensor("self"), call.out.shape[0])}, OPERATORS)
    with pytest.raises(pumice.UnsupportedError, match=r"'n' must be a fixed number, but .* depends on the sizes"):
        run(lambda x: x.relu(), X, dynamic_shapes=(({0: Dim("n", min=2, max=9)},),))


def test_a_record_that_fails_is_an_internal_error_that_names_the_line(world) -> None:
    run = world({aten.relu.default: lambda call: call["nonsense"]}, OPERATORS)
    with pytest.raises(pumice.Error, match=r"relu.*graphs.py:\d+.*nonsense") as caught:
        run(lambda x: x.relu(), X)
    assert caught.value.code == "Internal"


def test_signatures_are_read_as_the_runtime_writes_them() -> None:
    parsed = Signature.parse("op", 2, "Tensor x, Tensor? bias, ints dims -> Tensor, Tensor", {"A": ["f32"]})
    assert [(p.type, p.name, p.optional) for p in parsed.parameters] == [
        ("Tensor", "x", False),
        ("Tensor", "bias", True),
        ("ints", "dims", False),
    ]
    assert parsed.outputs == ("Tensor", "Tensor") and parsed.accepts == {"A": ("f32",)}
    assert Signature.parse("op", 1, "-> Tensor", {}).parameters == ()


def test_every_record_speaks_of_operators_that_exist() -> None:
    import torchao  # noqa: F401 (registers its operators)
    from executorch.exir.passes import _quant_patterns_and_replacements  # noqa: F401 (likewise)
    from torch.ao.quantization.fx import _decomposed  # noqa: F401 (likewise)

    from pumice.llm import sample_token  # noqa: F401 (likewise)
    from pumice.passes import cached_attention, experts, random_numbers  # noqa: F401 (likewise)

    assert len(optable.op_table()) > 40
    for target in pumice.lowering.registry.targets():
        if isinstance(target, str):
            library, name, overload = target.split(".")
            target = getattr(getattr(getattr(torch.ops, library), name), overload)
        assert isinstance(target, torch._ops.OpOverload)
