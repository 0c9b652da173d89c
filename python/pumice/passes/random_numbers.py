# SPDX-License-Identifier: Apache-2.0
"""torch's random operators -> numbers of a counter-based generator (ops/random.cpp).

Its seed is a state of the program, two words that each run moves on, so that runs differ; the same seed gives the same
runs (Session.seed, reset). They are not the numbers that torch draws, which depend on its device and version, but have
the same distribution.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, InputSpec, OutputKind, OutputSpec, TensorArgument
from torch.fx import Node

from pumice.passes.rewrite import Before, arguments, value_of

aten = torch.ops.aten

STATE = "pumice.random"  # the name of the state in a file: graph/state_values.cpp knows it
UNIFORM, NORMAL, BITS = range(3)  # kinds of ops/random.cpp
_MOST_INTEGERS = 2**24  # of a draw: 2^31 numbers are divided among them, so that none is 1 % more probable
_FACTOR, _INCREMENT = 747796405, 739  # x -> x * factor + increment runs through all words


@torch.library.custom_op("pumice::random", mutates_args=())
def random(seed: torch.Tensor, stream: int, kind: int, size: list[int]) -> torch.Tensor:
    """Numbers of a stream; only a device computes them."""
    raise NotImplementedError("pumice::random runs on a device")


@random.register_fake
def _(seed: torch.Tensor, stream: int, kind: int, size: list[int]) -> torch.Tensor:
    return seed.new_empty(size, dtype=torch.int32 if kind == BITS else torch.float32)


class _Numbers:
    """What replaces the node of one random operator."""

    def __init__(self, node: Node, seed: Node, stream: int) -> None:
        self.value, self.shape = value_of(node), list(value_of(node).shape)
        self._before, self._seed, self._stream = Before(node, node), seed, stream

    def draw(self, kind: int) -> Node:
        dtype = torch.int32 if kind == BITS else torch.float32
        sizes = [size if isinstance(size, int) else -1 for size in self.shape]  # the value has them all
        args = (self._seed, self._stream, kind, sizes)
        return self._before.add(torch.ops.pumice.random.default, *args, shape=self.shape, dtype=dtype)

    def apply(self, target: Any, *args: Any, dtype: torch.dtype = torch.float32, **kwargs: Any) -> Node:
        return self._before.add(target, *args, shape=self.shape, dtype=dtype, **kwargs)

    def cast(self, node: Node) -> Node:
        dtype = self.value.dtype
        return node if value_of(node).dtype is dtype else self.apply(aten._to_copy.default, node, dtype=dtype)

    def uniform(self) -> Node:
        """Of fp16 the multiples of 2^-11: rounding could make a 1."""
        x = self.draw(UNIFORM)
        if self.value.dtype is not torch.float32:
            whole = self.apply(aten.floor.default, self.apply(aten.mul.Tensor, x, 2.0**11))
            x = self.apply(aten.mul.Tensor, whole, 2.0**-11)
        return self.cast(x)

    def normal(self) -> Node:
        return self.cast(self.draw(NORMAL))

    def integers(self, low: int, high: int) -> Node:
        bits = self.draw(BITS)
        inside = self.apply(aten.remainder.Scalar, bits, high - low, dtype=torch.int32)
        return self.cast(self.apply(aten.add.Scalar, inside, low, dtype=torch.int32))

    def permutation(self) -> Node:
        """The places of random numbers in order."""
        bits = self.draw(BITS)
        dtypes = (torch.int32, torch.int64)
        values = tuple(self._before.empty(self.shape, dtype) for dtype in dtypes)
        pair = self._before.add_many(aten.sort.default, (bits,), values)
        return self.cast(self._before.add(operator.getitem, pair, 1, shape=self.shape, dtype=torch.int64))


def _integers(numbers: _Numbers, given: dict[str, Any]) -> Node:
    return numbers.integers(given.get("low", 0), given["high"])


def _can_draw(node: Node) -> bool:
    """What is left is refused by name."""
    if RANDOM.get(node.target) is not _integers:
        return node.target in RANDOM
    given = arguments(node)
    return given["high"] - given.get("low", 0) <= _MOST_INTEGERS


RANDOM: dict[Any, Callable[[_Numbers, dict[str, Any]], Node]] = {
    aten.rand.default: lambda numbers, _: numbers.uniform(),
    aten.rand_like.default: lambda numbers, _: numbers.uniform(),
    aten.randn.default: lambda numbers, _: numbers.normal(),
    aten.randn_like.default: lambda numbers, _: numbers.normal(),
    aten.randint.default: _integers,
    aten.randint.low: _integers,
    aten.randint_like.default: _integers,
    aten.randint_like.low_dtype: _integers,
    aten.randperm.default: lambda numbers, _: numbers.permutation(),
}


def draw_on_the_device(program: ExportedProgram, seed: int) -> None:
    """Rewrites the graph of `program` in place; adds the state where there is a random operator."""
    found = [node for node in program.graph.nodes if _can_draw(node)]
    if not found:
        return
    state = _add_state(program, found[0], seed)
    for stream, node in enumerate(found):
        made = RANDOM[node.target](_Numbers(node, state, stream), arguments(node))
        node.replace_all_uses_with(made)
        program.graph.erase_node(node)


def _add_state(program: ExportedProgram, like: Node, seed: int) -> Node:
    """The seed as a buffer that each run moves on."""
    graph, signature = program.graph, program.graph_signature
    output = next(node for node in graph.nodes if node.op == "output")
    with graph.inserting_before(next(iter(graph.nodes))):
        state = graph.placeholder("pumice_random")
    value = value_of(like).new_empty([2], dtype=torch.int32)
    state.meta["val"] = value
    moved = state
    for target, number in ((aten.mul.Scalar, _FACTOR), (aten.add.Scalar, _INCREMENT)):
        with graph.inserting_before(output):
            moved = graph.call_function(target, (moved, number))
        moved.meta["val"] = value
    output.args = ((moved, *output.args[0]),)
    words = [word - 2**32 if word >= 2**31 else word for word in (seed % 2**32, seed >> 32)]
    program.state_dict[STATE] = torch.tensor(words, dtype=torch.int32)
    signature.input_specs.insert(0, InputSpec(InputKind.BUFFER, TensorArgument(state.name), STATE, True))
    signature.output_specs.insert(0, OutputSpec(OutputKind.BUFFER_MUTATION, TensorArgument(moved.name), STATE))
    return state
