# SPDX-License-Identifier: Apache-2.0
"""The program as Python holds it between lowering and writing: plain data, a mirror of serialization/schema.fbs.

Nothing here knows torch: lowering/ fills it, writer.py writes it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum


class DType(IntEnum):
    """Types of elements (schema.fbs). i64 has 32 bits on the device, i4 is for weights only."""

    f32 = 0
    f16 = 1
    i32 = 2
    i64 = 3
    bool = 4
    u8 = 5
    i8 = 6
    i4 = 7


class ValueKind(IntEnum):
    """What a value is to its method (schema.fbs)."""

    input = 0
    output = 1
    constant = 2
    state = 3
    scratch = 4


class Storage(IntEnum):
    """What a value is on the device (schema.fbs)."""

    buffer = 0
    texture3d = 1
    texture2d = 2


class Precision(IntEnum):
    """What products of fp32 are computed in (schema.fbs; `precision` of ExportOptions)."""

    split = 0
    fp32 = 1
    fp16 = 2


class ExprOp(IntEnum):
    """What a node of Method.exprs computes (schema.fbs); division rounds down."""

    constant = 0
    symbol = 1
    add = 2
    sub = 3
    mul = 4
    floordiv = 5
    mod = 6
    min = 7
    max = 8


@dataclass(frozen=True)
class Expr:
    """One node of Method.exprs; a and b are a number, a symbol index, or indices of earlier nodes (schema.fbs)."""

    op: ExprOp
    a: int
    b: int = 0


@dataclass(frozen=True)
class SizeExpr:
    """A size that is Method.exprs[index]; a plain int is a size, too."""

    index: int


Size = int | SizeExpr


@dataclass
class Symbol:
    """A size that an input's shape gives: its bounds, both included, and its size at export."""

    name: str
    min: int
    max: int
    hint: int


@dataclass
class Value:
    """A tensor of a method. `ref`: the number of its constant or state, -1 of all others."""

    kind: ValueKind
    dtype: DType
    dims: list[Size]
    ref: int = -1
    name: str = ""
    storage: Storage = Storage.buffer


@dataclass(frozen=True)
class ValueId:
    """An argument that is a value (a tensor)."""

    index: int


# None, a tensor, a number, a dtype, a size, or a list of tensors or sizes. The operator's signature says which.
Arg = None | ValueId | int | float | bool | DType | SizeExpr | list


@dataclass
class OpCall:
    """One operator call. `outputs`: numbers of values; `source`: the line of the user's model."""

    op: str
    version: int
    args: list[Arg]
    outputs: list[int]
    source: str = ""


@dataclass
class Method:
    """One function of a program. inputs, outputs: numbers of values; in_spec, out_spec: runtime/nesting.py."""

    name: str = "forward"
    symbols: list[Symbol] = field(default_factory=list)
    exprs: list[Expr] = field(default_factory=list)
    values: list[Value] = field(default_factory=list)
    ops: list[OpCall] = field(default_factory=list)
    inputs: list[int] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)
    updates: list[tuple[int, int]] = field(default_factory=list)  # (state or input, value it takes after a run)
    in_spec: str = ""
    out_spec: str = ""


@dataclass
class Constant:
    """`data` is called when the file is written (so that deciding needs no bytes); it returns exactly `size` bytes."""

    key: str
    size: int
    data: Callable[[], bytes]
    external: bool = False


@dataclass
class State:
    """A tensor that lives on the device between calls. `constant`: its first value, -1 for zeros."""

    key: str
    constant: int = -1


@dataclass
class Program:
    """A file. `required_features`: what a reader must know to run it."""

    producer: str = "pumice"
    required_features: list[str] = field(default_factory=list)
    constants: list[Constant] = field(default_factory=list)
    states: list[State] = field(default_factory=list)
    methods: list[Method] = field(default_factory=list)
    precision: Precision = Precision.split
