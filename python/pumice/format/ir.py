# SPDX-License-Identifier: Apache-2.0
"""The program as Python holds it between lowering and writing: plain data, a mirror of serialization/schema.fbs.

Nothing here knows torch: lowering/ fills it, writer.py writes it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum


class DType(IntEnum):
    f32 = 0
    f16 = 1
    i32 = 2
    i64 = 3
    bool = 4
    u8 = 5
    i8 = 6
    i4 = 7


class ValueKind(IntEnum):
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


class ExprOp(IntEnum):
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
    name: str
    min: int
    max: int
    hint: int


@dataclass
class Value:
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
    op: str
    version: int
    args: list[Arg]
    outputs: list[int]
    source: str = ""


@dataclass
class Method:
    name: str = "forward"
    symbols: list[Symbol] = field(default_factory=list)
    exprs: list[Expr] = field(default_factory=list)
    values: list[Value] = field(default_factory=list)
    ops: list[OpCall] = field(default_factory=list)
    inputs: list[int] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)
    updates: list[tuple[int, int]] = field(default_factory=list)  # (state value, value it takes after a run)
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
    key: str
    constant: int = -1


@dataclass
class Program:
    producer: str = "pumice"
    required_features: list[str] = field(default_factory=list)
    constants: list[Constant] = field(default_factory=list)
    states: list[State] = field(default_factory=list)
    methods: list[Method] = field(default_factory=list)
