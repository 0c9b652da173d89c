# SPDX-License-Identifier: Apache-2.0
"""A graph of TorchDynamo -> an ExportedProgram in which the weights are constants.

TorchDynamo gives weights, inputs and the sizes of dynamic dimensions as arguments of one list. `Arguments` tells them
apart once; `capture` exports the graph for the arguments of a call.
"""

from __future__ import annotations

import operator
import re
import warnings
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.export import Dim, ExportedProgram
from torch.export.graph_signature import OutputKind
from torch.fx import GraphModule, Node
from torch.fx.traceback import preserve_node_meta

from pumice.lowering.source import stack_traces
from pumice.passes.decompositions import decompositions, run_decompositions
from pumice.passes.tied_constants import merge_tied_constants

_STEPS = re.compile(r"\['?(\w+)'?\]|\.(\w+)")
_PERHAPS_VIEWS = (torch.ops.aten.reshape.default, torch.ops.aten.contiguous.default, torch.ops.aten.dropout.default)
_NOT_NAMES = ("_modules", "_parameters", "_buffers")


@dataclass(frozen=True)
class Argument:
    """`name`: of a weight in the model, else of the placeholder. `size`: the symbol of a number that is a size.
    `dims`: of a tensor, for each dimension the symbol of a dynamic one."""

    name: str
    is_weight: bool
    size: str
    dims: tuple[str, ...]


def arguments(graph: GraphModule, given: Sequence[Any]) -> list[Argument]:
    """What each argument of a graph is. Called while TorchDynamo compiles: later the nodes know less."""
    found = []
    for node, value in zip(graph.graph.find_nodes(op="placeholder"), given, strict=True):
        example = node.meta.get("example_value", value)
        tensor = isinstance(example, torch.Tensor)
        source = getattr(node, "_dynamo_source", None)
        weight = tensor and (isinstance(value, torch.nn.Parameter) or _is_of_module(source))
        found.append(
            Argument(
                _name(source, node) if weight else node.name,
                weight,
                _symbol(example),
                tuple(_symbol(size) for size in example.shape) if tensor else (),
            )
        )
    return found


def _is_of_module(source: Any) -> bool:
    try:
        guard = source.guard_source
        guard = guard() if callable(guard) else guard
        return guard.is_unspecialized_nn_module() or guard.is_specialized_nn_module()
    except AttributeError:  # no source, or one of another version of torch: an input is always right
        return False


def _symbol(size: Any) -> str:
    """Of a size that is not fixed, else ""."""
    if not isinstance(size, torch.SymInt):
        return ""
    expr = size.node.expr
    return "" if expr.is_number else str(expr)


def _name(source: Any, node: Node) -> str:
    """L['self']._modules['fc']._parameters['weight'] -> fc.weight"""
    try:
        name = source.name
        text = name() if callable(name) else name
    except AttributeError:
        return node.name
    steps = [a or b for a, b in _STEPS.findall(text)]
    return ".".join(step for step in steps[1:] if step not in _NOT_NAMES) or node.name


class Captured(torch.nn.Module):
    """A graph called with its inputs only: it has its weights, and takes sizes from the shapes of inputs.

    inputs: positions of the tensors that a caller passes. weights: positions of those that are constants. Other
    numbers are those of the example.
    """

    def __init__(
        self, graph: GraphModule, known: Sequence[Argument], given: Sequence[Any], inputs: list[int], weights: list[int]
    ) -> None:
        super().__init__()
        self.graph = graph
        self._inputs = {position: number for number, position in enumerate(inputs)}
        self._names: dict[int, str] = {}
        self._numbers = {n: value for n, value in enumerate(given) if n not in self._inputs and n not in weights}
        for position in weights:
            name = f"{known[position].name.replace('.', '_')}_{position}"
            if isinstance(given[position], torch.nn.Parameter):
                self.register_parameter(name, given[position])
            else:
                self.register_buffer(name, given[position])
            self._names[position] = name
        self._sizes = sizes_of_inputs(known, inputs)

    def forward(self, *inputs: torch.Tensor) -> Any:
        """The results of the graph."""
        values = []
        for position in range(len(self._inputs) + len(self._names) + len(self._numbers)):
            if position in self._inputs:
                values.append(inputs[self._inputs[position]])
            elif position in self._names:
                values.append(getattr(self, self._names[position]))
            elif position in self._sizes:
                number, dim = self._sizes[position]
                values.append(inputs[number].shape[dim])
            else:
                values.append(self._numbers[position])
        return torch.fx.Interpreter(self.graph).run(*values)  # which keeps where each node comes from


def sizes_of_inputs(known: Sequence[Argument], inputs: Sequence[int]) -> dict[int, tuple[int, int]]:
    """For the arguments that are the size of a dimension: (number of the input, dimension)."""
    places = {}
    for number, position in enumerate(inputs):
        for dim, symbol in enumerate(known[position].dims):
            if symbol:
                places.setdefault(symbol, (number, dim))
    return {n: places[argument.size] for n, argument in enumerate(known) if argument.size in places}


def capture(
    graph: GraphModule,
    known: Sequence[Argument],
    given: Sequence[Any],
    inputs: list[int],
    weights: list[int],
    dynamic: bool,
) -> tuple[ExportedProgram, dict[str, str]]:
    """Exports the graph and takes it apart as pumice.export does; also where its nodes come from (`stack_traces`).

    Raises what torch.export raises. Operators that draw random numbers stay whole: PyTorch draws them."""
    module = Captured(graph, known, given, inputs, weights).eval()
    tensors = tuple(given[position].detach() for position in inputs)
    shapes = [{dim: Dim.AUTO for dim, symbol in enumerate(known[p].dims) if symbol and dynamic} for p in inputs]
    with warnings.catch_warnings(), torch.no_grad(), preserve_node_meta():
        warnings.simplefilter("ignore")
        captured = torch.export.export(
            module, tensors, dynamic_shapes=(tuple(shapes),) if any(shapes) else None, strict=False
        )
        table = decompositions(dropout=False)
        for target in [t for t in table if draws(t)]:
            table.pop(target)
        return run_decompositions(merge_tied_constants(captured), table), stack_traces(captured)


def draws(target: Any) -> bool:
    """Whether an operator can draw random numbers."""
    return torch.Tag.nondeterministic_seeded in getattr(target, "tags", ())


def left_to_eager(program: ExportedProgram, sharing: Collection[int]) -> dict[Node, str]:
    """Nodes that must not run on the device, and why. `sharing`: results that share memory with another tensor."""
    outside = {}
    for node in program.graph.nodes:
        if node.op == "call_function" and draws(node.target) and not _draws_nothing(node):
            outside[node] = "it draws random numbers, which PyTorch's generator does here"
    specs = program.graph_signature.output_specs
    results = zip(program.graph.output_node().args[0], specs, strict=True)
    own = [node for node, spec in results if spec.kind is OutputKind.USER_OUTPUT]
    for number in sharing:
        node = own[number]
        while isinstance(node, Node) and node.op == "call_function" and _may_share(node.target):
            outside[node] = "its result shares memory with another tensor, as in eager"
            node = node.args[0]
    return outside


def _may_share(target: Any) -> bool:
    return target is operator.getitem or getattr(target, "is_view", False) or target in _PERHAPS_VIEWS


def _draws_nothing(node: Node) -> bool:
    """A dropout in evaluation, an attention without one."""
    schema = node.target._schema.arguments
    named = {argument.name: value for argument, value in zip(schema, node.args, strict=False)} | dict(node.kwargs)
    defaults = {argument.name: argument.default_value for argument in schema if argument.has_default_value()}
    named = defaults | named
    return named.get("train", named.get("training")) is False or named.get("dropout_p") == 0
