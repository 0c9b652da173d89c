# SPDX-License-Identifier: Apache-2.0
"""Elementwise operators that nothing else has taken, one behind the other -> elementwise_chain: one dispatch, and what
is between them stays in registers. Each step is rounded as the operator alone rounds it.

A chain ends in any of them and takes those in front of it whose results are of its shape and read inside of it only."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from torch.fx import Node

from pumice.format.ir import DType
from pumice.lowering.call import Emitted
from pumice.lowering.operands import FLOATS, is_one
from pumice.lowering.ref import Ref
from pumice.lowering.registry import rewrites
from pumice.lowering.selection import Selection, refs
from pumice.lowering.sizes import same_shape

# FUNCTION of glsl/elementwise_chain.glsl, in its order.
FUNCTIONS = (
    "gelu", "gelu_tanh", "tanh", "sigmoid", "silu", "exp", "expm1", "log", "log1p", "sqrt", "rsqrt", "reciprocal",
    "erf", "hardswish", "hardsigmoid", "relu", "neg", "abs", "square", "add", "sub", "mul", "div", "maximum", "minimum",
    "pow", "prelu", "elu", "add_relu", "clamp", "where", "eq", "ne", "lt", "le", "gt", "ge",
)  # fmt: skip
_CODES = {name: code for code, name in enumerate(FUNCTIONS)}
_COMPARISONS = frozenset(("eq", "ne", "lt", "le", "gt", "ge"))
# CHAIN_* of glsl/include/core/modes.glslh.
_STEPS, _X, _MOST_X, _CONDITION, _NUMBER, _NUMBERS = 8, 8, 4, 12, 16, 8


@dataclass
class _Calls:
    """All operator calls by what they make, who reads that, and where they stand."""

    place: dict[int, tuple[int, Node]] = field(default_factory=dict)  # by id(call): its number, and its node
    made_by: dict[Any, Emitted] = field(default_factory=dict)
    readers: dict[Any, list[Emitted]] = field(default_factory=dict)
    kept: set[Any] = field(default_factory=set)  # what leaves the graph

    def is_taken_by_convolution(self, call: Emitted) -> bool:
        """Whether the runtime makes the call a part of a convolution: a sum behind one, factors of channels before."""
        if call.op in ("add", "add_relu"):
            makers = (self.made_by.get(ref.made_by) for ref in refs(call.args))
            return any(maker is not None and "conv2d" in maker.op for maker in makers)
        if call.op != "mul" or not any(
            "conv2d" in reader.op for reader in self.readers.get(call.outputs[0].made_by, ())
        ):
            return False
        return any(ref.rank == 4 and all(map(is_one, ref.shape[2:])) for ref in refs(call.args))


def _may_be_step(call: Emitted) -> bool:
    if call.op not in _CODES or len(call.outputs) != 1:
        return False
    tensors = refs(call.args)
    if call.op in ("add", "sub") and call.args[2] != 1:
        return False
    if call.op in _COMPARISONS:
        return tensors[0].dtype in FLOATS
    dtype = call.outputs[0].dtype
    tensors = tensors[1:] if call.op == "where" else tensors
    return dtype in FLOATS and all(ref.dtype is dtype for ref in tensors)


class _Chain:
    """The arguments of the operator, as far as its steps are known. Steps are added from the last to the first."""

    def __init__(self, steps: list[Emitted]) -> None:
        self.x: list[Ref] = []
        self.condition: Ref | None = None
        self.numbers: list[float] = []
        self.codes: list[int] = []
        self.fits = len(steps) <= _STEPS
        self._made = {call.outputs[0].made_by: at for at, call in enumerate(steps)}
        for call in steps:
            operands = call.args if call.op == "clamp" else call.args[: 3 if call.op == "where" else 2]
            codes = [self._operand(call, at, each) for at, each in enumerate(operands)]
            self.codes += [_CODES[call.op], *codes, *[0] * (3 - len(codes))]
        self.fits = self.fits and 1 <= len(self.x) <= _MOST_X and len(self.numbers) <= _NUMBERS

    @property
    def args(self) -> list[Any]:
        """Those of the operator."""
        return [self.x, self.condition, self.codes, *self.numbers]

    def _operand(self, call: Emitted, at: int, value: Any) -> int:
        if not isinstance(value, Ref):
            return self._number(call, at, value)
        if value.made_by in self._made:
            return self._made[value.made_by]
        if value.dtype is DType.bool:
            self.fits = self.fits and (self.condition is None or _is_same(self.condition, value))
            self.condition = value
            return _CONDITION
        known = next((k for k, ref in enumerate(self.x) if _is_same(ref, value)), len(self.x))
        if known == len(self.x):
            self.x.append(value)
        return _X + known

    def _number(self, call: Emitted, at: int, value: Any) -> int:
        number = float(value) if value is not None else float("-inf") if at == 1 else float("inf")
        if call.op in _COMPARISONS and refs(call.args)[0].dtype is DType.f16:
            with np.errstate(over="ignore"):
                number = float(np.float16(number))  # as PyTorch compares
        same = (k for k, other in enumerate(self.numbers) if str(other) == str(number))  # by text: -0.0, NaN
        known = next(same, len(self.numbers))
        if known == len(self.numbers):
            self.numbers.append(number)
        return _NUMBER + known


def _is_same(a: Ref, b: Ref) -> bool:
    return a.is_same(b) and a.dtype is b.dtype and same_shape(a.shape, b.shape)


def _grow(calls: _Calls, last: Emitted, taken: set[int]) -> list[Emitted]:
    """The steps of the longest chain that ends in `last`, in their order."""
    out, steps, inside = last.outputs[0], [last], {id(last)}

    def may_join(call: Emitted | None) -> bool:
        if call is None or id(call) in taken | inside or not _may_be_step(call):
            return False
        made = call.outputs[0]
        if made.made_by in calls.kept or not same_shape(made.shape, out.shape) or calls.is_taken_by_convolution(call):
            return False
        return all(id(reader) in inside for reader in calls.readers[made.made_by])

    grown = True
    while grown:
        inputs = [calls.made_by.get(ref.made_by) for step in steps for ref in refs(step.args)]
        found = {id(call): call for call in inputs if may_join(call)}
        grown = False
        for call in sorted(found.values(), key=lambda call: -calls.place[id(call)][0]):
            longer = sorted([*steps, call], key=lambda step: calls.place[id(step)][0])
            if _Chain(longer).fits:
                steps, grown = longer, True
                inside.add(id(call))
                break
    return steps


def _look(selection: Selection, results: list[Node]) -> _Calls:
    calls = _Calls(kept={selection.ref(node).made_by for node in results})
    for node in selection.order:
        for call in selection.blocks.get(node, ()):
            calls.place[id(call)] = len(calls.place), node
            for ref in call.outputs:
                calls.made_by[ref.made_by] = call
            for ref in refs(call.args):
                calls.readers.setdefault(ref.made_by, []).append(call)
    return calls


@rewrites
def elementwise_chain(selection: Selection, results: list[Node]) -> None:
    """Replaces calls by chains; the last first, so that a chain is as long as it can be. Of values in textures, which
    chains do not take, every operator stays alone."""
    if selection.options.storage != "buffer":
        return
    calls, taken = _look(selection, results), set[int]()
    everything = [call for node in selection.order for call in selection.blocks.get(node, ())]
    for last in reversed(everything):
        is_end = _may_be_step(last) and last.op not in _COMPARISONS and id(last) not in taken
        if not is_end or calls.is_taken_by_convolution(last):
            continue
        steps = _grow(calls, last, taken)
        if len(steps) == 1:
            continue
        taken.update(map(id, steps))
        _replace(selection, calls, steps)


def _replace(selection: Selection, calls: _Calls, steps: list[Emitted]) -> None:
    last = steps[-1]
    args = selection.encode("elementwise_chain", 1, _Chain(steps).args, last.outputs)
    node = calls.place[id(last)][1]
    for step in steps[:-1]:
        other = calls.place[id(step)][1]
        block = [call for call in selection.blocks[other] if call is not step]
        selection.blocks[other] = block
        if not block:
            del selection.blocks[other]
            selection.fused_by[other] = node
    last.op, last.version, last.args = "elementwise_chain", 1, args
