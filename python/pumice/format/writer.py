# SPDX-License-Identifier: Apache-2.0
"""Writes a program (ir.py) as a .pumice file; docs/format.md has the layout, serialization/ the reader.

Constants are asked for one at a time and go straight to the file, so that a model takes no more memory than its
largest weight.
"""

from __future__ import annotations

import io
import os
import struct
from collections.abc import Callable, Iterable, Sequence
from typing import Any, BinaryIO

import flatbuffers
import numpy as np
import xxhash

from pumice.format import _schema as fb
from pumice.format import ir
from pumice.format.replacing import replacing

_MAGIC = b"PMC1"
_VERSION = 1
_HEADER = struct.Struct("<I4sIIQQQQQ")  # and the hash of these 56 bytes
_HEADER_SIZE = _HEADER.size + 8
_ALIGNMENT = 64
_MAX_TEXT = 4096  # Limits::max_name_bytes of serialization/program.h
_MAX_SPEC = 1 << 20  # Limits::max_spec_bytes


def to_bytes(program: ir.Program) -> bytes:
    """The file, in memory."""
    file = io.BytesIO()
    write(program, file)
    return file.getvalue()


def save(program: ir.Program, path: str | os.PathLike[str]) -> None:
    """A reader sees the old file or the new one."""
    with replacing(path) as file:
        write(program, file)


def write(program: ir.Program, file: BinaryIO) -> None:
    """Writes to an empty, seekable file: the constants first, since the program holds their hashes."""
    offsets, size = _layout(program.constants)
    start = _align(_HEADER_SIZE + len(_program(program, offsets, [0] * len(offsets))))
    _zeros(file, start)
    hashes = []
    position = 0
    for constant, offset in zip(program.constants, offsets, strict=True):
        data = memoryview(constant.data()).cast("B")
        if len(data) != constant.size:
            raise ValueError(f"the constant '{constant.key}' must have {constant.size} bytes and has {len(data)}")
        hashes.append(xxhash.xxh3_64_intdigest(data))
        if not constant.external:
            _zeros(file, offset - position)
            file.write(data)
            position = offset + len(data)
    body = _program(program, offsets, hashes)
    if _align(_HEADER_SIZE + len(body)) != start:
        raise AssertionError("the program's size depends on its hashes")
    digest = xxhash.xxh3_64_intdigest(body)
    header = _HEADER.pack(_HEADER_SIZE, _MAGIC, _VERSION, 0, _HEADER_SIZE, len(body), digest, start, size)
    file.seek(0)
    file.write(header + struct.pack("<Q", xxhash.xxh3_64_intdigest(header)) + body)
    file.seek(0, io.SEEK_END)


def _layout(constants: Sequence[ir.Constant]) -> tuple[list[int], int]:
    """The offset of every constant in the section (0 for those outside of the file), and the section's size."""
    offsets, end = [], 0
    for constant in constants:
        offset = 0 if constant.external else _align(end)
        offsets.append(offset)
        if not constant.external:
            end = offset + constant.size
    return offsets, end


def _align(size: int) -> int:
    return (size + _ALIGNMENT - 1) // _ALIGNMENT * _ALIGNMENT


def _zeros(file: BinaryIO, count: int) -> None:
    file.write(bytes(count))


def _program(program: ir.Program, offsets: Sequence[int], hashes: Sequence[int]) -> bytes:
    """The FlatBuffer. Its size is the same for any hashes."""
    builder = flatbuffers.Builder(1 << 16)
    names = list(dict.fromkeys((call.op, call.version) for method in program.methods for call in method.ops))
    numbers = {name: index for index, name in enumerate(names)}

    def tables(name: str, items: Iterable[dict[str, Any]]) -> int:
        return _offsets(builder, [_table(builder, name, **fields) for fields in items])

    fields = {
        "Producer": _text(builder, program.producer, "the producer"),
        "RequiredFeatures": _offsets(
            builder, [_text(builder, name, "a feature") for name in program.required_features]
        ),
        "OpNames": tables("OpName", ({"Name": _text(builder, n, "an operator"), "Version": v} for n, v in names)),
        "Constants": _constants(builder, program.constants, offsets, hashes),
        "States": tables(
            "State", ({"Key": _text(builder, s.key, "a state"), "Constant": s.constant} for s in program.states)
        ),
        "Methods": _offsets(builder, [_method(builder, method, numbers) for method in program.methods]),
        "Precision": int(program.precision),
    }
    builder.Finish(_table(builder, "Program", **fields), file_identifier=_MAGIC)
    return bytes(builder.Output())


def _constants(
    builder: flatbuffers.Builder, constants: Sequence[ir.Constant], offsets: Sequence[int], hashes: Sequence[int]
) -> int:
    tables = []
    for constant, offset, digest in zip(constants, offsets, hashes, strict=True):
        fields = {"Offset": offset, "Size": constant.size, "Hash": digest, "External": constant.external}
        key = _text(builder, constant.key, "a constant")
        builder.ForceDefaults(True)  # also a hash of 0 takes its place
        tables.append(_table(builder, "Constant", Key=key, **fields))
        builder.ForceDefaults(False)
    return _offsets(builder, tables)


def _method(builder: flatbuffers.Builder, method: ir.Method, numbers: dict[tuple[str, int], int]) -> int:
    where = f"methods['{method.name}']"
    exprs = _Exprs(method.exprs)
    # Calls come before expressions: a list that mixes numbers and expressions adds the numbers to these.
    calls = [
        _call(builder, call, numbers[call.op, call.version], exprs, f"{where}.ops[{index}] ({call.op})")
        for index, call in enumerate(method.ops)
    ]
    fields = {
        "Name": _text(builder, method.name, "a method"),
        "Symbols": _offsets(
            builder,
            [
                _table(builder, "Symbol", Name=_text(builder, s.name, "a symbol"), Min=s.min, Max=s.max, Hint=s.hint)
                for s in method.symbols
            ],
        ),
        "Exprs": exprs.write(builder),
        "Values": _offsets(
            builder, [_value(builder, value, f"{where}.values[{index}]") for index, value in enumerate(method.values)]
        ),
        "Ops": _offsets(builder, calls),
        "Inputs": _numbers(builder, method.inputs, "<u4", f"{where}.inputs"),
        "Outputs": _numbers(builder, method.outputs, "<u4", f"{where}.outputs"),
        "Updates": _offsets(
            builder, [_table(builder, "Update", State=state, Value=value) for state, value in method.updates]
        ),
        "InSpec": _text(builder, method.in_spec, f"{where}.in_spec", _MAX_SPEC),
        "OutSpec": _text(builder, method.out_spec, f"{where}.out_spec", _MAX_SPEC),
    }
    return _table(builder, "Method", **fields)


def _value(builder: flatbuffers.Builder, value: ir.Value, where: str) -> int:
    dims = [-(dim.index + 1) if isinstance(dim, ir.SizeExpr) else dim for dim in value.dims]
    if any(dim < 0 for dim in value.dims if not isinstance(dim, ir.SizeExpr)):
        raise ValueError(f"{where}: a size is negative: {value.dims}")
    return _table(
        builder,
        "Value",
        Kind=int(value.kind),
        Dtype=int(value.dtype),
        Dims=_numbers(builder, dims, "<i8", where),
        Ref=value.ref,
        Name=_text(builder, value.name, where),
        Storage=int(value.storage),
    )


def _call(builder: flatbuffers.Builder, call: ir.OpCall, number: int, exprs: _Exprs, where: str) -> int:
    args = [_arg(builder, arg, exprs, f"{where} argument {index}") for index, arg in enumerate(call.args)]
    source = call.source.encode(errors="replace")[:_MAX_TEXT].decode(errors="ignore")
    return _table(
        builder,
        "OpCall",
        Op=number,
        Args=_offsets(builder, args),
        Outputs=_numbers(builder, call.outputs, "<u4", where),
        Source=_text(builder, "".join(c if c.isprintable() or c in "\n\t" else "?" for c in source), where),
    )


def _arg(builder: flatbuffers.Builder, arg: ir.Arg, exprs: _Exprs, where: str) -> int:
    kind = fb.ArgKind
    # A bool and a DType are ints, too, so these go first.
    simple: list[tuple[type, int, Callable[[Any], dict[str, Any]]]] = [
        (type(None), kind.none, lambda _: {}),
        (ir.ValueId, kind.value, lambda value: {"I": value.index}),
        (ir.SizeExpr, kind.expr, lambda size: {"I": size.index}),
        (bool, kind.boolean, lambda flag: {"I": int(flag)}),
        (ir.DType, kind.dtype, lambda dtype: {"I": int(dtype)}),
        (int, kind.int, lambda number: {"I": _int64(number, where)}),
        (float, kind.float, lambda number: {"F": number}),
    ]
    for cls, number, fields in simple:
        if isinstance(arg, cls):
            builder.ForceDefaults(cls is float)  # -0.0 is equal to the default, 0.0
            table = _table(builder, "Arg", Kind=number, **fields(arg))
            builder.ForceDefaults(False)
            return table
    if not isinstance(arg, list | tuple):
        raise TypeError(f"{where}: {arg!r} is no argument of an operator")
    if arg and all(isinstance(item, ir.ValueId) for item in arg):
        number, items = kind.values, [item.index for item in arg]
    elif any(isinstance(item, ir.SizeExpr) for item in arg):
        number, items = kind.exprs, [exprs.index(item, where) for item in arg]
    else:
        number, items = kind.ints, [_int64(item, where) for item in arg]
    return _table(builder, "Arg", Kind=number, List=_numbers(builder, items, "<i8", where) if items else None)


def _int64(number: Any, where: str) -> int:
    if isinstance(number, bool) or not isinstance(number, int) or not -(2**63) <= number < 2**63:
        raise TypeError(f"{where}: {number!r} is not an integer of 64 bits")
    return int(number)


class _Exprs:
    """Method.exprs, and the constants that mixed lists need."""

    def __init__(self, exprs: Iterable[ir.Expr]) -> None:
        self._exprs = list(exprs)
        self._constants: dict[int, int] = {}

    def index(self, size: ir.Size, where: str) -> int:
        if isinstance(size, ir.SizeExpr):
            return size.index
        size = _int64(size, where)
        if size not in self._constants:
            self._constants[size] = len(self._exprs)
            self._exprs.append(ir.Expr(ir.ExprOp.constant, size))
        return self._constants[size]

    def write(self, builder: flatbuffers.Builder) -> int:
        fb.MethodStartExprsVector(builder, len(self._exprs))
        for expr in reversed(self._exprs):
            fb.CreateExpr(builder, int(expr.op), expr.a, expr.b)
        return builder.EndVector()


def _table(builder: flatbuffers.Builder, name: str, **fields: Any) -> int:
    """One table by the generated functions; fields that are None stay away. Offsets must have been written before."""
    getattr(fb, f"{name}Start")(builder)
    for field, value in fields.items():
        if value is not None:
            getattr(fb, f"{name}Add{field}")(builder, value)
    return getattr(fb, f"{name}End")(builder)


def _offsets(builder: flatbuffers.Builder, offsets: Sequence[int]) -> int:
    builder.StartVector(4, len(offsets), 4)
    for offset in reversed(offsets):
        builder.PrependUOffsetTRelative(offset)
    return builder.EndVector()


def _numbers(builder: flatbuffers.Builder, numbers: Sequence[int], dtype: str, where: str) -> int:
    try:
        return builder.CreateNumpyVector(np.array(numbers, dtype))
    except OverflowError:
        raise ValueError(f"{where}: {list(numbers)} does not fit {np.dtype(dtype).name}") from None


def _text(builder: flatbuffers.Builder, text: str, where: str, limit: int = _MAX_TEXT) -> int | None:
    """A string, shared with equal ones; the reader refuses control characters and what is longer than `limit`."""
    if not text:
        return None if where not in _REQUIRED else builder.CreateString("")
    if any((ord(c) < 32 and c not in "\n\t") or 0x7F <= ord(c) < 0xA0 for c in text) or len(text.encode()) > limit:
        raise ValueError(f"{where}: {text[:80]!r} has control characters, or more than {limit} bytes")
    return builder.CreateSharedString(text)


_REQUIRED = frozenset({"an operator", "a constant", "a state", "a method", "a symbol", "a feature"})
