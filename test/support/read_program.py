# SPDX-License-Identifier: Apache-2.0
"""A file as the program that was written (pumice.format.ir), for tests that change it and write it again."""

from __future__ import annotations

import struct
from typing import Any

from pumice.format import _schema as fb
from pumice.format import ir


def read_program(file: bytes) -> ir.Program:
    """Of a well-formed file with all constants inside."""
    offset, length, data_offset = (struct.unpack_from("<Q", file, at)[0] for at in (16, 24, 40))
    program = fb.Program.GetRootAs(file[offset : offset + length], 0)
    read = ir.Program(_text(program.Producer()))
    read.precision = ir.Precision(program.Precision())
    read.required_features = [_text(program.RequiredFeatures(i)) for i in range(program.RequiredFeaturesLength())]
    for i in range(program.ConstantsLength()):
        constant = program.Constants(i)
        begin = data_offset + constant.Offset()
        data = file[begin : begin + constant.Size()]
        read.constants.append(ir.Constant(_text(constant.Key()), len(data), lambda data=data: data))
    for i in range(program.StatesLength()):
        read.states.append(ir.State(_text(program.States(i).Key()), program.States(i).Constant()))
    names = [program.OpNames(i) for i in range(program.OpNamesLength())]
    read.methods = [_method(program.Methods(i), names) for i in range(program.MethodsLength())]
    return read


def _method(method: Any, names: list[Any]) -> ir.Method:
    read = ir.Method(_text(method.Name()), in_spec=_text(method.InSpec()), out_spec=_text(method.OutSpec()))
    for i in range(method.SymbolsLength()):
        symbol = method.Symbols(i)
        read.symbols.append(ir.Symbol(_text(symbol.Name()), symbol.Min(), symbol.Max(), symbol.Hint()))
    for i in range(method.ExprsLength()):
        expr = method.Exprs(i)
        read.exprs.append(ir.Expr(ir.ExprOp(expr.Op()), expr.A(), expr.B()))
    for i in range(method.ValuesLength()):
        value = method.Values(i)
        dims = [_size(value.Dims(j)) for j in range(value.DimsLength())]
        kind, dtype = ir.ValueKind(value.Kind()), ir.DType(value.Dtype())
        storage = ir.Storage(value.Storage())
        read.values.append(ir.Value(kind, dtype, dims, value.Ref(), _text(value.Name()), storage))
    for i in range(method.OpsLength()):
        call = method.Ops(i)
        args = [_arg(call.Args(j)) for j in range(call.ArgsLength())]
        outputs = [call.Outputs(j) for j in range(call.OutputsLength())]
        name = names[call.Op()]
        read.ops.append(ir.OpCall(_text(name.Name()), name.Version(), args, outputs, _text(call.Source())))
    read.inputs = [method.Inputs(i) for i in range(method.InputsLength())]
    read.outputs = [method.Outputs(i) for i in range(method.OutputsLength())]
    updates = [method.Updates(i) for i in range(method.UpdatesLength())]
    read.updates = [(update.State(), update.Value()) for update in updates]
    return read


def _arg(arg: Any) -> ir.Arg:
    kind, items = fb.ArgKind, [arg.List(i) for i in range(arg.ListLength())]
    return {
        kind.none: None,
        kind.value: ir.ValueId(arg.I()),
        kind.int: arg.I(),
        kind.float: arg.F(),
        kind.boolean: bool(arg.I()),
        kind.dtype: ir.DType(arg.I()) if arg.Kind() == kind.dtype else None,
        kind.expr: ir.SizeExpr(arg.I()),
        kind.ints: items,
        kind.exprs: [ir.SizeExpr(item) for item in items],
        kind.values: [ir.ValueId(item) for item in items],
    }[arg.Kind()]


def _size(dim: int) -> ir.Size:
    return dim if dim >= 0 else ir.SizeExpr(-dim - 1)


def _text(text: bytes | None) -> str:
    return (text or b"").decode()
