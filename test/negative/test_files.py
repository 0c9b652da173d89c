# SPDX-License-Identifier: Apache-2.0
"""Bad files through the Python entry points: a typed error that names the object, quickly, and the process goes on.

The C++ tests of serialization/ have the whole list; the ids are those of docs/format.md, "What is refused".
"""

from __future__ import annotations

import os
import random
import struct
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import xxhash
from support.hostile import resealed
from support.make_seeds import PROGRAMS

import pumice
from pumice.format import ir
from pumice.format.writer import to_bytes

pytestmark = pytest.mark.every  # what strangers send: each case in every run

GOOD = to_bytes(PROGRAMS["linear"]())


def header(at: int, form: str, value: int) -> bytes:
    data = bytearray(GOOD)
    struct.pack_into(form, data, at, value)
    struct.pack_into("<Q", data, 56, xxhash.xxh3_64_intdigest(bytes(data[:56])))
    return bytes(data)


def changed(change: Callable[[ir.Program], None], name: str = "linear") -> bytes:
    program = PROGRAMS[name]()
    change(program)
    return to_bytes(program)


def method(change: Callable[[ir.Method], None], name: str = "linear") -> bytes:
    return changed(lambda program: change(program.methods[0]), name)


def no_bytes(key: str) -> ir.Constant:
    return ir.Constant(key, 0, lambda: b"")


CASES = [
    ("F01 empty", b"", "Truncated", "header"),
    ("F01 one byte", b"@", "Truncated", "header"),
    ("F01 header only", GOOD[:64], "Truncated", "header.program_size"),
    ("F03 zip", b"PK\3\4" + bytes(100), "BadHeader", "header.magic"),
    ("F03 escape codes", b"\x1b[31" * 50, "BadHeader", "header.magic"),
    ("F04 newer", header(8, "<I", 2), "UnsupportedVersion", "header.version"),
    ("F04 flag", header(12, "<I", 1 << 31), "UnsupportedVersion", "header.flags"),
    ("F05 header size", header(0, "<I", 0xFFFF), "BadHeader", "header.header_size"),
    ("F06 wraps", header(24, "<Q", 2**64 - 10), "BadHeader", "header.program_size"),
    ("F07 trailing bytes", GOOD + b"\0", "BadHeader", "header.constants_size"),
    ("F18 one terabyte", header(48, "<Q", 1 << 40), "Truncated", "header.constants_size"),
    (
        "F19 equal keys",
        changed(lambda p: p.constants.extend([no_bytes("a"), no_bytes("a")])),
        "BadSchema",
        "constants[3].key",
    ),
    ("F19 empty key", changed(lambda p: p.constants.append(no_bytes(""))), "BadSchema", "constants[2].key"),
    ("F19 equal methods", changed(lambda p: p.methods.append(p.methods[0])), "BadSchema", "methods[1].name"),
    (
        "F24 feature",
        changed(lambda p: p.required_features.append("spirv")),
        "UnsupportedVersion",
        "required_features[0]",
    ),
    ("F24 precision", changed(lambda p: setattr(p, "precision", 3)), "BadSchema", "precision"),
    ("G01 input", method(lambda m: m.inputs.append(99)), "BadIndex", "methods[0].inputs[1]"),
    ("G01 constant", method(lambda m: setattr(m.values[0], "ref", 7)), "BadIndex", "methods[0].values[0].ref"),
    ("G02 operator", method(lambda m: setattr(m.ops[1], "op", "warp")), "UnknownOp", "op_names[1]"),
    ("G02 version", method(lambda m: setattr(m.ops[1], "version", 9)), "UnknownOp", "op_names[1]"),
    ("G03 no arguments", method(lambda m: m.ops[0].args.clear()), "BadGraph", "methods[0].ops[0].args"),
    ("G03 one more", method(lambda m: m.ops[0].args.append(1)), "BadGraph", "methods[0].ops[0].args"),
    ("G04 kind", method(lambda m: m.ops[0].args.__setitem__(0, 1.5)), "BadGraph", "methods[0].ops[0].args[0]"),
    ("G05 order", method(lambda m: m.ops.reverse()), "BadGraph", "methods[0].ops[0].args[0]"),
    ("G06 twice", method(lambda m: m.ops.append(m.ops[0])), "BadGraph", "methods[0].ops[2].outputs[0]"),
    ("G07 output", method(lambda m: m.outputs.append(0)), "BadGraph", "methods[0].outputs[1]"),
    ("G10 rank", method(lambda m: setattr(m.values[3], "dims", [1] * 9)), "BadShape", "methods[0].values[3].dims"),
    (
        "G10 size",
        method(lambda m: setattr(m.values[3], "dims", [2**32, 2**32])),
        "BadShape",
        "methods[0].values[3].dims[0]",
    ),
    (
        "G10 product",
        method(lambda m: setattr(m.values[3], "dims", [2**30] * 5)),
        "LimitExceeded",
        "methods[0].values[3].dims",
    ),
    ("G16 bounds", method(lambda m: setattr(m.symbols[0], "max", 1 << 40)), "BadShape", "methods[0].symbols[0]"),
    ("G16 unbound", method(lambda m: m.symbols.append(ir.Symbol("t", 1, 2, 1))), "BadShape", "methods[0].symbols[1]"),
    (
        "G16 affine",  # without the feature
        changed(lambda p: p.required_features.clear(), "affine"),
        "BadShape",
        "methods[0].symbols[0]",
    ),
    (
        "G16 factor 0",
        method(lambda m: m.exprs.__setitem__(1, ir.Expr(ir.ExprOp.constant, 0)), "affine"),
        "BadShape",
        "methods[0].symbols[0]",
    ),
    ("W02 bytes", method(lambda m: setattr(m.values[0], "dims", [4, 9])), "WeightsMismatch", "methods[0].values[0]"),
]


@pytest.mark.parametrize(("data", "code", "path"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_refused(data: bytes, code: str, path: str) -> None:
    start = time.process_time()
    with pytest.raises(pumice.InvalidFileError) as caught:
        pumice.check(data)
    assert time.process_time() - start < 1
    assert (caught.value.code, caught.value.path) == (code, path)
    assert str(caught.value).isprintable() or "\n" in str(caught.value)
    pumice.check(GOOD)


NO_NESTING = [
    "*", "7", "[1]", "{}", '{"x":1}', '{"t":7}', '{"t":[null,null]}', '{"d":[1]}', '{"d":[[[],null]]}',
    '{"o":[[1,null]]}', '{"d":[["a",null],["a",null]]}', '{"d":[["a",null,1]]}', '{"N":[["a b",null]],"name":"x"}',
    '{"N":[["a",null]]}', '{"t":' * 9000, "[" * 5000,
]  # fmt: skip
NO_ARGUMENTS = ['{"t":[{"t":[null]},{"l":[]}],"names":["x"]}', '{"t":[{"t":[null]},{"d":[]}],"names":[1]}']
DAMAGED = [("in_spec", text) for text in NO_NESTING + NO_ARGUMENTS] + [("out_spec", text) for text in NO_NESTING]


@pytest.mark.parametrize(("field", "text"), DAMAGED)
def test_a_damaged_nesting(field, text) -> None:
    """Only Python reads this field: for the four gates it is text."""
    specs = {"in_spec": '{"t":[{"t":[null]},{"d":[]}],"names":["x"]}', "out_spec": "null", field: text}
    data = method(lambda m: [setattr(m, name, value) for name, value in specs.items()], "relu")
    pumice.check(data)
    with pytest.raises(pumice.InvalidFileError) as caught:
        pumice.load(data, device="llvmpipe")
    assert (caught.value.code, caught.value.path) == ("BadSchema", field)


def test_every_prefix() -> None:
    """F02"""
    for size in range(len(GOOD)):
        with pytest.raises(pumice.InvalidFileError) as caught:
            pumice.check(GOOD[:size])
        assert caught.value.code == "Truncated"


@pytest.mark.parametrize("hashes", ["kept", "made right"])
def test_flipped_bits(hashes: str) -> None:
    """F09, F10: the C++ test has 10,000 of each"""
    chance = random.Random(9)
    refused = 0
    for _ in range(500):
        data = bytearray(GOOD)
        bit = chance.randrange(64 * 8 if hashes == "made right" else 0, len(data) * 8)
        data[bit // 8] ^= 1 << bit % 8
        try:
            pumice.check(bytes(data) if hashes == "kept" else resealed(data))
        except pumice.InvalidFileError as error:
            assert error.code != "Internal"
            refused += 1
    assert refused == 500 if hashes == "kept" else 0 < refused < 500  # a bit of a weight is as good as another


def test_paths(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "empty").write_bytes(b"")
    os.mkfifo(tmp_path / "pipe")
    for name, code in [
        ("missing", "IoError"),
        ("folder", "PathRejected"),
        ("pipe", "PathRejected"),
        ("empty", "Truncated"),
    ]:
        with pytest.raises(pumice.Error) as caught:
            pumice.check(tmp_path / name)
        assert caught.value.code == code


def test_memory_and_descriptors_stay(tmp_path: Path) -> None:
    path = tmp_path / "bad.pumice"
    path.write_bytes(GOOD[:-1])
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(100):
        with pytest.raises(pumice.InvalidFileError):
            pumice.check(path)
    assert len(list(Path("/proc/self/fd").iterdir())) == before
