# SPDX-License-Identifier: Apache-2.0
"""Small programs, for the fuzzer to start from and for tests of the reader: make_seeds.py [FOLDER]"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from pumice.format import ir
from pumice.format.ir import DType, Expr, ExprOp, OpCall, SizeExpr, ValueId, ValueKind
from pumice.format.writer import to_bytes

SEEDS = Path(__file__).parents[1] / "fuzz/corpus/load"
ROWS = SizeExpr(0)  # the symbol


class Builder:
    """One method over the symbol s, 1 to 64, at export 5."""

    def __init__(self) -> None:
        self.method = ir.Method(
            symbols=[ir.Symbol("s", 1, 64, 5)], exprs=[Expr(ExprOp.symbol, 0)], in_spec="*", out_spec="*"
        )
        self.program = ir.Program(producer="make_seeds.py", methods=[self.method])

    def value(self, kind: ValueKind, dtype: DType, dims: list[ir.Size], ref: int = -1, name: str = "") -> int:
        self.method.values.append(ir.Value(kind, dtype, dims, ref, name))
        index = len(self.method.values) - 1
        if kind is ValueKind.input:
            self.method.inputs.append(index)
        if kind is ValueKind.output:
            self.method.outputs.append(index)
        return index

    def input(self, dtype: DType, dims: list[ir.Size], name: str = "x") -> int:
        return self.value(ValueKind.input, dtype, dims, name=name)

    def output(self, dtype: DType, dims: list[ir.Size]) -> int:
        return self.value(ValueKind.output, dtype, dims, name="y")

    def scratch(self, dtype: DType, dims: list[ir.Size]) -> int:
        return self.value(ValueKind.scratch, dtype, dims)

    def constant(self, key: str, dtype: DType, dims: list[int], data: bytes) -> int:
        self.program.constants.append(ir.Constant(key, len(data), lambda: data))
        return self.value(ValueKind.constant, dtype, list(dims), len(self.program.constants) - 1, key)

    def expr(self, op: ExprOp, a: int, b: int = 0) -> SizeExpr:
        self.method.exprs.append(Expr(op, a, b))
        return SizeExpr(len(self.method.exprs) - 1)

    def call(self, op: str, args: list[ir.Arg], outputs: list[int]) -> None:
        self.method.ops.append(OpCall(op, 1, args, outputs, f"model.py:{len(self.method.ops) + 10}"))


def relu() -> ir.Program:
    b = Builder()
    b.call("relu", [ValueId(b.input(DType.f32, [ROWS, 8]))], [b.output(DType.f32, [ROWS, 8])])
    return b.program


def linear() -> ir.Program:
    b = Builder()
    weight = b.constant("weight", DType.f32, [4, 8], np.arange(32, dtype="<f4").tobytes())
    bias = b.constant("bias", DType.f32, [4], np.ones(4, "<f4").tobytes())
    x, hidden = b.input(DType.f32, [ROWS, 8]), b.scratch(DType.f32, [ROWS, 4])
    b.call("linear", [ValueId(x), ValueId(weight), ValueId(bias), 0, None], [hidden])
    b.call("add", [ValueId(hidden), 2, 1.0], [b.output(DType.f32, [ROWS, 4])])
    return b.program


def linear_q4gsw() -> ir.Program:
    b = Builder()
    weight = b.constant("weight", DType.i4, [4, 64], bytes(range(128)))
    scale = b.constant("scale", DType.f32, [4, 2], np.linspace(0.5, 1, 8).astype("<f4").tobytes())
    x, y = b.input(DType.f32, [ROWS, 64]), b.output(DType.f32, [ROWS, 4])
    b.call("linear_q4gsw", [ValueId(x), ValueId(weight), ValueId(scale), None, None, 32, 0, None], [y])
    return b.program


def counter() -> ir.Program:
    """y = x + count; count += 1."""
    b = Builder()
    b.program.constants.append(ir.Constant("count", 8, lambda: np.array([3], "<i8").tobytes()))
    b.program.states.append(ir.State("count", 0))
    count = b.value(ValueKind.state, DType.i64, [1], 0, "count")
    x, following = b.input(DType.i64, [ROWS]), b.scratch(DType.i64, [1])
    b.call("add", [ValueId(count), 1, 1.0], [following])
    b.call("add", [ValueId(x), ValueId(following), 1.0], [b.output(DType.i64, [ROWS])])
    b.method.updates.append((count, following))
    return b.program


def carried() -> ir.Program:
    """y = x + 1, with which x starts in the next step of a call."""
    b = Builder()
    b.program.required_features = ["input_updates"]
    x, y = b.input(DType.f32, [ROWS]), b.output(DType.f32, [ROWS])
    b.call("add", [ValueId(x), 1, 1.0], [y])
    b.method.updates.append((x, y))
    return b.program


def sizes() -> ir.Program:
    """cat(x, x) as one row, and its first half."""
    b = Builder()
    two, four = b.expr(ExprOp.constant, 2), b.expr(ExprOp.constant, 4)
    double = b.expr(ExprOp.mul, 0, two.index)
    flat = b.expr(ExprOp.mul, double.index, four.index)
    half = b.expr(ExprOp.floordiv, flat.index, two.index)
    x, both, row = b.input(DType.f16, [ROWS, 4]), b.scratch(DType.f16, [double, 4]), b.scratch(DType.f16, [1, flat])
    b.call("cat", [[ValueId(x), ValueId(x)], 0], [both])
    b.call("view", [ValueId(both), [1, flat]], [row])
    b.call("slice", [ValueId(row), 1, 0, half, 1], [b.output(DType.f16, [1, half])])
    return b.program


def affine() -> ir.Program:
    """Rows of 16 * s + 3, and no input that has s alone."""
    b = Builder()
    sixteen, three = b.expr(ExprOp.constant, 16), b.expr(ExprOp.constant, 3)
    rows = b.expr(ExprOp.add, b.expr(ExprOp.mul, sixteen.index, 0).index, three.index)
    b.call("relu", [ValueId(b.input(DType.f32, [rows, 8]))], [b.output(DType.f32, [rows, 8])])
    b.program.required_features = ["affine_inputs"]
    return b.program


def nested() -> ir.Program:
    """A size of 40 expressions, each of the one before it; two methods that share a state and a constant."""
    b = Builder()
    one, size = b.expr(ExprOp.constant, 1), SizeExpr(0)
    for op in [ExprOp.min, ExprOp.max, ExprOp.add, ExprOp.sub, ExprOp.mul, ExprOp.floordiv] * 6:
        size = b.expr(op, size.index, 0 if op in (ExprOp.min, ExprOp.max) else one.index)
    b.call("relu", [ValueId(b.input(DType.f32, [ROWS, 8]))], [b.scratch(DType.f32, [ROWS, 8])])
    b.call("view", [ValueId(1), [size, 8]], [b.output(DType.f32, [size, 8])])
    b.method.in_spec, b.method.out_spec = '{"t":[' * 20 + "null" + "]}" * 20, "null"
    second = Builder()
    second.method.name = "second"
    second.call("relu", [ValueId(second.input(DType.f32, [ROWS]))], [second.output(DType.f32, [ROWS])])
    for each in (b, second):
        each.value(ValueKind.state, DType.i64, [1], 0, "count")
    b.program.methods.append(second.method)
    b.program.constants.append(ir.Constant("count", 8, lambda: bytes(8)))
    b.program.states.append(ir.State("count", 0))
    return b.program


PROGRAMS = {
    "relu": relu,
    "linear": linear,
    "linear_q4gsw": linear_q4gsw,
    "counter": counter,
    "carried": carried,
    "sizes": sizes,
    "affine": affine,
    "nested": nested,
}


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else SEEDS
    folder.mkdir(parents=True, exist_ok=True)
    for name, make in PROGRAMS.items():
        (folder / f"{name}.pumice").write_bytes(to_bytes(make()))


if __name__ == "__main__":
    main()
