# SPDX-License-Identifier: Apache-2.0
"""quantize(f(dequantize(x), ...)) with one scale and zero point each -> integers from integers, without floats, so that
a network between its first quantize node and its last dequantize node has none. What is between becomes

    a move of integers (views, permutations, cat, pad, largest elements, nearest ones), exact
    a table of 256 results of any chain of functions of one element, computed by PyTorch itself, exact
    an operator on integers: convolution, add, mul, means, bilinear upsampling

The files integers_*.py have these, registered by `moves`, `tables` and `computes`. Each is a pattern with a name, for
ExportOptions.without_fusion. Nothing is emitted before all of it is known to work.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from pumice.format.ir import DType
from pumice.lowering.call import Call
from pumice.lowering.quantized import QuantizedTensor, quantized
from pumice.lowering.quantized_activation import is_number_pair, per_tensor
from pumice.lowering.quantized_names import QUANTIZE_NUMBERS
from pumice.lowering.ref import Ref
from pumice.lowering.registry import Refused, fuses, pattern_name

aten = torch.ops.aten

Step = Callable[[Ref], Any]  # emits operator calls that write a tensor


@dataclass(frozen=True)
class Target:
    """The integers of the node `quantize`."""

    quantize: Call
    dtype: DType

    @property
    def numbers(self) -> tuple:
        """As q8ta operators end with them."""
        quantize = self.quantize
        return (
            float(quantize["scale"]),
            int(quantize["zero_point"]),
            int(quantize["quant_min"]),
            int(quantize["quant_max"]),
        )

    def holds(self, q: QuantizedTensor) -> bool:
        """Whether integers of `q` are these as they are: one that might have to be clamped is not."""
        whole = (-128, 127) if self.dtype is DType.i8 else (0, 255)
        same = (float(q.scale), int(q.zero), q.qmin, q.qmax) == self.numbers and (q.qmin, q.qmax) == whole
        return same and q.data.dtype is self.dtype

    def quantized(self, value: torch.Tensor) -> torch.Tensor:
        """Real numbers as these integers, computed by PyTorch itself."""
        node = self.quantize.node
        return node.target(value, *node.args[1:], **node.kwargs)


Move = Callable[[Call, Target], Callable[[list[Ref], Ref], Any] | None]
Table = Callable[[Call, Ref, Target], Step | None]
Compute = Callable[[Call, str, Target], Step | None]

# With the names of their patterns.
_moves: dict[Any, tuple[str, Move]] = {}
_tables: list[tuple[str, Table]] = []
_computes: dict[Any, tuple[str, Compute]] = {}


def moves(*targets: Any) -> Callable[[Move], Move]:
    """Registers a function of (node, target) for operators that take elements to other places, or leave out smaller
    ones. It returns what emits the same for integers: a function of (inputs, output), or None."""

    def register(move: Move) -> Move:
        _moves.update(dict.fromkeys(targets, (pattern_name(move), move)))
        return move

    return register


def tables(table: Table) -> Table:
    """Registers a function of (call, ref, target) for results that are a table of the integers before them: `ref` is
    what the node of `call` reads. It returns what writes the integers, or None."""
    _tables.append((pattern_name(table), table))
    return table


def computes(*targets: Any) -> Callable[[Compute], Compute]:
    """Registers a function of (node, activation, target) for operators that have a form on integers. The node has one
    reader and an f32 result; `activation` is a name of ACTIVATIONS. It returns what writes the integers, or None."""

    def register(compute: Compute) -> Compute:
        _computes.update(dict.fromkeys(targets, (pattern_name(compute), compute)))
        return compute

    return register


@fuses(QUANTIZE_NUMBERS)
def integers(call: Call) -> Callable[[], None] | None:
    """Matches where all between the dequantize nodes and this quantize node has a form on integers."""
    out = call.out
    if not is_number_pair(call["scale"], call["zero_point"], out):
        return None
    step = _plan(call, call.tensor("input"), Target(call, out.dtype))
    return None if step is None else lambda: step(out)


def integer_operand(reader: Call, value: Any, to: Target) -> QuantizedTensor | None:
    """The integers of an operand, constant ones included (a number that was quantized), if they have the dtype of the
    target."""
    q = quantized(reader, value) if isinstance(value, Ref) else None
    known = q is not None and q.kind == "tensor" and is_number_pair(q.scale, q.zero, q.data)
    return q if known and q.data.dtype is to.dtype else None


def _plan(call: Call, ref: Ref, to: Target) -> Step | None:
    """How to write the integers of `ref`, which the node of `call` reads; None where that needs floats."""
    return _same(call, ref, to) or _looked_up(call, ref, to) or _moved(call, ref, to) or _computed(call, ref, to)


def _same(call: Call, ref: Ref, to: Target) -> Step | None:
    """Integers that need no change."""
    q = per_tensor(call, ref)
    if q is None or not to.holds(q):
        return None
    return lambda out: call.emit("view", q.data, list(out.shape), out=out)


def _looked_up(call: Call, ref: Ref, to: Target) -> Step | None:
    found = (table(call, ref, to) for name, table in _tables if not call.is_left_out(name))
    return next((step for step in found if step is not None), None)


def _moved(call: Call, ref: Ref, to: Target) -> Step | None:
    producer = call.producer(ref, *_moves)
    if producer is None:
        return None
    pattern, move = _moves[producer.target]
    if call.is_left_out(pattern):
        return None
    try:
        emit = move(producer, to)
    except Refused:
        return None
    name = producer.target._schema.arguments[0].name
    inputs = producer[name] if name == "tensors" else [producer[name]]
    befores = [_plan(producer, before, to) for before in inputs]
    if emit is None or not inputs or any(before is None for before in befores):
        return None

    def step(out: Ref) -> None:
        moved = []
        for before, given in zip(befores, inputs, strict=True):
            moved.append(producer.temp(to.dtype, given.shape))
            before(moved[-1])
        emit(moved, out)

    return step


def _computed(call: Call, ref: Ref, to: Target) -> Step | None:
    if ref.dtype is not DType.f32:  # PyTorch rounds every step to fp16
        return None
    act = "none"
    for target, name in ((aten.relu.default, "relu"), (aten.relu6.default, "relu6"), (aten.hardtanh.default, "relu6")):
        producer = call.producer(ref, target, single_use=True)
        if producer is not None and (
            target is not aten.hardtanh.default or (producer["min_val"], producer["max_val"]) == (0, 6)
        ):
            call, ref, act = producer, producer.tensor("self"), name
            break
    producer = call.producer(ref, *_computes, single_use=True)
    if producer is None:
        return None
    pattern, compute = _computes[producer.target]
    return None if call.is_left_out(pattern) else compute(producer, act, to)
