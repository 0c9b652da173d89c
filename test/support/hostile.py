# SPDX-License-Identifier: Apache-2.0
"""Files that ask for much: for tests of budgets, of linear loads and of hostile files. No torch."""

from __future__ import annotations

import struct
from collections.abc import Callable

import numpy as np
import xxhash

from pumice.format import ir
from pumice.format.ir import DType, ExprOp, Storage, ValueId, ValueKind
from pumice.format.writer import to_bytes
from support.make_seeds import Builder


def resealed(file: bytes) -> bytes:
    """With the hashes of its header and program made right."""
    data = bytearray(file)
    offset, length = struct.unpack_from("<QQ", data, 16)
    struct.pack_into("<Q", data, 32, xxhash.xxh3_64_intdigest(bytes(data[offset : offset + length])))
    struct.pack_into("<Q", data, 56, xxhash.xxh3_64_intdigest(bytes(data[:56])))
    return bytes(data)


def builder() -> Builder:
    """Without the symbol and the specs that make_seeds.py gives its programs."""
    made = Builder()
    made.method.symbols, made.method.exprs, made.method.in_spec, made.method.out_spec = [], [], "", ""
    return made


def chain(calls: int, shape: tuple[int, ...], call: Callable[[Builder, int, int, int], None], **more: object) -> bytes:
    """`calls` calls, each of the result of the one before: call(builder, index, input, output)."""
    b = builder()
    x = b.input(DType.f32, list(shape))
    for index in range(calls):
        y = (b.output if index == calls - 1 else b.scratch)(DType.f32, list(shape))
        if index < calls - 1:
            b.method.values[y].storage = more.get("storage", Storage.buffer)
        call(b, index, x, y)
        x = y
    return to_bytes(b.program)


def relus(calls: int, storage: Storage = Storage.buffer) -> bytes:
    return chain(calls, (1, 8), lambda b, _, x, y: b.call("relu", [ValueId(x)], [y]), storage=storage)


def fan(calls: int, storage: Storage = Storage.buffer) -> bytes:
    """Every call reads the input, and one sum reads all: all values live at once."""
    b = builder()
    x = b.input(DType.f32, [1, 8])
    values = [b.scratch(DType.f32, [1, 8]) for _ in range(calls)]
    for value in values:
        b.method.values[value].storage = storage
        b.call("relu", [ValueId(x)], [value])
    total = x
    for index, value in enumerate(values):
        y = (b.output if index == calls - 1 else b.scratch)(DType.f32, [1, 8])
        b.call("add", [ValueId(total), ValueId(value), 1.0], [y])
        total = y
    return to_bytes(b.program)


def linears(calls: int, n: int = 1, k: int = 1) -> bytes:
    """Layers of n x k in a chain, each with a weight of its own (n equals k where there are several)."""

    def call(b: Builder, index: int, x: int, y: int) -> None:
        weight = b.constant(f"w{index}", DType.f32, [n, k], np.full((n, k), index, "<f4").tobytes())
        b.call("linear", [ValueId(x), ValueId(weight), None, 0, None], [y])

    return chain(calls, (1, k), call)


def scatters(calls: int) -> bytes:
    """Half of the calls make a chain in place; the others read its end."""
    b = builder()
    x, row = b.input(DType.f32, [2, 4]), b.input(DType.f32, [1, 4], "row")
    for index in range(calls):
        y = (b.output if index >= calls // 2 else b.scratch)(DType.f32, [2, 4])
        b.method.values[y].name = f"y{index}"
        b.call("slice_scatter", [ValueId(x), ValueId(row), 0, 0, 1, 1], [y])
        x = y if index < calls // 2 else x
    return to_bytes(b.program)


def states(count: int, shape: tuple[int, ...]) -> bytes:
    """`count` states of zeros, and a call that does nothing with them."""
    b = builder()
    b.call("relu", [ValueId(b.input(DType.f32, [1]))], [b.output(DType.f32, [1])])
    for index in range(count):
        b.program.states.append(ir.State(f"s{index}"))
        b.value(ValueKind.state, DType.f32, list(shape), index)
    return to_bytes(b.program)


def columns(count: int, n: int) -> bytes:
    """Linear layers of n x 1, whose weights grow when they are packed."""
    b = builder()
    x = b.input(DType.f32, [1, 1])
    data = np.ones((n, 1), "<f4").tobytes()
    for index in range(count):
        weight = b.constant(f"w{index}", DType.f32, [n, 1], data)
        y = b.output(DType.f32, [1, n])
        b.method.values[y].name = f"y{index}"
        b.call("linear", [ValueId(x), ValueId(weight), None, 0, None], [y])
    return to_bytes(b.program)


def large_values(count: int, elements: int) -> bytes:
    """Values that all live at once, far larger than the file."""
    b = builder()
    values = [b.scratch(DType.f32, [elements]) for _ in range(count)]
    for value in values:
        b.call("full", [1.0, [elements]], [value])
    total = values[0]
    for index, value in enumerate(values):
        y = (b.output if index == count - 1 else b.scratch)(DType.f32, [elements])
        b.call("add", [ValueId(total), ValueId(value), 1.0], [y])
        total = y
    return to_bytes(b.program)


def attentions(queries: int, values: int) -> bytes:
    """A call, and a pipeline, for every pair of a query's and a value's size."""
    b = builder()
    q = [b.input(DType.f32, [1, 1, 1, 4 * size], f"q{size}") for size in range(1, queries + 1)]
    v = [b.input(DType.f32, [1, 1, 1, 4 * size], f"v{size}") for size in range(1, values + 1)]
    for i in range(queries):
        for j in range(values):
            y = b.output(DType.f32, [1, 1, 1, 4 * (j + 1)])
            b.method.values[y].name = f"y{i}_{j}"
            b.call("sdpa", [ValueId(q[i]), ValueId(q[i]), ValueId(v[j]), None, False, 1.0] + [False] * 4, [y])
    return to_bytes(b.program)


def dynamic(hint: int) -> bytes:
    """Values of a dynamic size, up to 2^31 - 1 at run time, `hint` at the load."""
    b = builder()
    b.method.symbols.append(ir.Symbol("s", 1, (1 << 31) - 1, hint))
    size = b.expr(ExprOp.symbol, 0)
    x, y = b.input(DType.f32, [size]), b.scratch(DType.f32, [size])
    b.call("relu", [ValueId(x)], [y])
    b.call("add", [ValueId(x), ValueId(y), 1.0], [b.output(DType.f32, [size])])
    return to_bytes(b.program)


def _with_expressions(count: int, op: ExprOp) -> Builder:
    """Expressions, each of the one before it and itself."""
    b = builder()
    b.method.symbols.append(ir.Symbol("s", 1, 64, 2))
    size = b.expr(ExprOp.symbol, 0)
    b.call("relu", [ValueId(b.input(DType.f32, [size]))], [b.output(DType.f32, [size])])
    for _ in range(count):
        size = b.expr(op, size.index, size.index)
    return b


def doubling(count: int) -> bytes:
    return to_bytes(_with_expressions(count, ExprOp.add).program)


def expressions(count: int) -> bytes:
    return to_bytes(_with_expressions(count, ExprOp.min).program)


def many_inputs(count: int) -> bytes:
    """Inputs whose sizes are the last of as many expressions."""
    b = _with_expressions(count, ExprOp.max)
    size = ir.SizeExpr(len(b.method.exprs) - 1)
    for index in range(count):
        b.input(DType.f32, [size], f"x{index}")
    return to_bytes(b.program)


def long_names(count: int) -> bytes:
    """Values that all have one long name."""
    b = builder()
    x = b.input(DType.f32, [1])
    for _ in range(count):
        b.call("relu", [ValueId(x)], [b.scratch(DType.f32, [1])])
        b.method.values[-1].name = "n" * 4000
    b.call("relu", [ValueId(x)], [b.output(DType.f32, [1])])
    return to_bytes(b.program)


def equal_names(count: int) -> bytes:
    """Inputs that have names of their own, but for the last two."""
    b = builder()
    for index in range(count):
        b.input(DType.f32, [1], f"x{min(index, count - 2)}")
    b.call("relu", [ValueId(0)], [b.output(DType.f32, [1])])
    return to_bytes(b.program)


def long_list(count: int) -> bytes:
    b = builder()
    b.call("cat", [[ValueId(b.input(DType.f32, [1]))] * count, 0], [b.output(DType.f32, [count])])
    return to_bytes(b.program)


TUPLE = '{"N":[["a",{"c":1}]],"name":"T"}'  # of one constant


def nested(spec: str) -> bytes:
    """`spec` is the nesting of the results, which are one tensor."""
    b = builder()
    b.call("relu", [ValueId(b.input(DType.f32, [1]))], [b.output(DType.f32, [1])])
    b.method.out_spec = spec
    return to_bytes(b.program)
