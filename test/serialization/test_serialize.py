# SPDX-License-Identifier: Apache-2.0
"""The writer: what it writes is what the C++ reader accepts, and it says no to what the reader would refuse."""

from __future__ import annotations

import os
import stat
import struct
import tracemalloc
from pathlib import Path

import pytest
import xxhash
from support.make_seeds import PROGRAMS, SEEDS

import pumice
from pumice.format import ir
from pumice.format.ir import DType, Expr, ExprOp, OpCall, SizeExpr, ValueId, ValueKind
from pumice.format.writer import save, to_bytes


def relu() -> ir.Program:
    return PROGRAMS["relu"]()


@pytest.mark.parametrize("name", PROGRAMS)
def test_seeds_are_what_the_writer_writes(name: str) -> None:
    assert to_bytes(PROGRAMS[name]()) == (SEEDS / f"{name}.pumice").read_bytes()


def test_seeds_are_small() -> None:
    assert sum(path.stat().st_size for path in SEEDS.iterdir()) < 20_000


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_reader_accepts_it(name: str) -> None:
    pumice.check(to_bytes(PROGRAMS[name]()))


def test_header() -> None:
    data = to_bytes(PROGRAMS["linear"]())
    size, magic, version, flags, offset, length, program, start, rest = struct.unpack_from("<I4sIIQQQQQ", data)
    assert (size, magic, version, flags, offset) == (64, b"PMC1", 1, 0, 64)
    assert start == -(-(offset + length) // 64) * 64
    assert rest == len(data) - start == 128 + 16  # 4x8 and 4 floats
    assert program == xxhash.xxh3_64_intdigest(data[offset : offset + length])
    assert struct.unpack_from("<Q", data, 56)[0] == xxhash.xxh3_64_intdigest(data[:56])
    assert not any(data[offset + length : start])


def constants(count: int, size: int, external: bool = False) -> ir.Program:
    program = relu()
    program.constants = [ir.Constant(f"c{i}", size, lambda i=i: bytes([i]) * size, external) for i in range(count)]
    return program


@pytest.mark.parametrize("size", [0, 1, 63, 64, 65])
def test_constants_of_any_size(size: int) -> None:
    data = to_bytes(constants(3, size))
    pumice.check(data)
    start = struct.unpack_from("<Q", data, 40)[0]
    stride = -(-size // 64) * 64
    for i in range(3):
        assert data[start + i * stride :][:size] == bytes([i]) * size


def test_external_constants_are_not_in_the_file() -> None:
    data = to_bytes(constants(3, 1000, external=True))
    pumice.check(data)
    assert len(data) < 2000


def test_saving_takes_the_memory_of_one_constant(tmp_path: Path) -> None:
    program = constants(16, 4 << 20)
    tracemalloc.start()
    try:
        save(program, tmp_path / "big.pumice")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 12 << 20
    assert (tmp_path / "big.pumice").stat().st_size > 64 << 20
    pumice.check(tmp_path / "big.pumice")


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "m.pumice"
    save(relu(), path)
    before = path.read_bytes()
    program = constants(2, 8)

    def broken() -> bytes:
        raise RuntimeError("no weights here")

    program.constants[1].data = broken
    with pytest.raises(RuntimeError, match="no weights"):
        save(program, path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_the_file_has_the_users_permissions(tmp_path: Path) -> None:
    old = os.umask(0o027)
    try:
        save(relu(), tmp_path / "m.pumice")
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "m.pumice").stat().st_mode) == 0o640


def test_a_constant_of_another_size() -> None:
    program = constants(1, 8)
    program.constants[0].data = lambda: b"1234567"
    with pytest.raises(ValueError, match=r"'c0' must have 8 bytes and has 7"):
        to_bytes(program)


def arguments(*args: ir.Arg) -> bytes:
    """A program whose one call has these arguments; the reader does not know the operator."""
    method = ir.Method(exprs=[Expr(ExprOp.constant, 3)], values=[ir.Value(ValueKind.scratch, DType.f32, [2])])
    method.ops = [OpCall("nothing_of_this_name", 1, list(args), [0])]
    return to_bytes(ir.Program(methods=[method]))


def written(data: bytes) -> tuple[list[tuple], list[tuple]]:
    """(kind, i, f, list) of every argument, and every expression, by the generated reader."""
    from pumice.format import _schema as fb

    method = fb.Program.GetRootAs(data[64:]).Methods(0)
    call = method.Ops(0)
    args = [call.Args(i) for i in range(call.ArgsLength())]
    exprs = [method.Exprs(i) for i in range(method.ExprsLength())]
    lists = [tuple(a.List(k) for k in range(a.ListLength())) for a in args]
    return [(a.Kind(), a.I(), a.F(), items) for a, items in zip(args, lists, strict=True)], [
        (e.Op(), e.A(), e.B()) for e in exprs
    ]


def test_every_kind_of_argument() -> None:
    args, exprs = written(
        arguments(
            None,
            ValueId(0),
            7,
            -2.5,
            True,
            DType.i8,
            SizeExpr(0),
            [1, -2],
            [4, SizeExpr(0), 4],
            [ValueId(0)],
            [],
            0,
            False,
        )
    )
    assert args == [
        (0, 0, 0.0, ()),
        (1, 0, 0.0, ()),
        (2, 7, 0.0, ()),
        (3, 0, -2.5, ()),
        (4, 1, 0.0, ()),
        (5, 6, 0.0, ()),
        (6, 0, 0.0, ()),
        (7, 0, 0.0, (1, -2)),
        (8, 0, 0.0, (1, 0, 1)),
        (9, 0, 0.0, (0,)),
        (7, 0, 0.0, ()),
        (2, 0, 0.0, ()),
        (4, 0, 0.0, ()),
    ]
    assert exprs == [(0, 3, 0), (0, 4, 0)]  # the 4 of the mixed list, once


@pytest.mark.parametrize("arg", ["text", 2**63, -(2**63) - 1, [1.5], [True], [ValueId(0), 1], {}, object()])
def test_arguments_that_no_operator_has(arg: object) -> None:
    with pytest.raises(TypeError, match=r"methods\['forward'\].ops\[0\] \(nothing_of_this_name\) argument 0"):
        arguments(arg)


@pytest.mark.parametrize("name", ["a\x1b[31m", "x" * 5000, "\x9b", "nul\0"])
def test_names_that_the_reader_refuses(name: str) -> None:
    program = constants(1, 8)
    program.constants[0].key = name
    with pytest.raises(ValueError, match="control characters"):
        to_bytes(program)


def test_sources_are_made_to_fit() -> None:
    program = relu()
    program.methods[0].ops[0].source = "model.py:3\n  \x1b[1mlong " + "ü" * 5000
    pumice.check(to_bytes(program))


def test_negative_sizes() -> None:
    program = relu()
    program.methods[0].values[0].dims[1] = -1
    with pytest.raises(ValueError, match=r"values\[0\]"):
        to_bytes(program)


def test_an_unknown_operator_is_named() -> None:
    with pytest.raises(pumice.InvalidFileError) as caught:
        pumice.check(arguments(None))
    assert caught.value.code == "UnknownOp"
    assert caught.value.path == "op_names[0]"
    assert "nothing_of_this_name" in str(caught.value)
