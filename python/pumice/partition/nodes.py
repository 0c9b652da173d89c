# SPDX-License-Identifier: Apache-2.0
"""Nodes of a program in ExecuTorch's edge dialect or in ATen's -> a Subgraph with ATen operators, the form that the
lowerings and passes of pumice.export take. The planner decides by it, and a file is written from it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.export import ExportedProgram
from torch.export.graph_signature import (
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    SymIntArgument,
    TensorArgument,
)
from torch.fx import Graph, Node

from pumice.lowering.subgraph import Subgraph

aten = torch.ops.aten
STORED = (InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR)
_COPIES = (
    "view", "permute", "transpose", "t", "unsqueeze", "squeeze", "slice", "select", "expand", "alias", "detach",
    "split", "split_with_sizes", "unbind",
)  # fmt: skip
_WITH_NUMBERS = (aten.add.Tensor, aten.sub.Tensor, aten.mul.Tensor, aten.div.Tensor)


def overload(target: Any) -> Any:
    """The ATen (or torchao) overload of an operator of the edge dialect; anything else as it is."""
    if type(target).__name__ == "EdgeOpOverload":  # of ExecuTorch, which need not be installed
        target = target._op
    if not isinstance(target, torch._ops.OpOverload) or target.namespace != "aten":
        return target
    name = target._schema.name.removeprefix("aten::").removesuffix("_copy")
    overloads = getattr(aten, name) if name in _COPIES else None
    return getattr(overloads, target._overloadname, target) if overloads else target


def translate(node: Node) -> tuple[Any, dict[str, Any]]:
    """ATen's overload and keyword arguments for a call; dimension orders are gone (only the usual one is lowered)."""
    target = overload(node.target)
    if str(target) == "dim_order_ops._to_dim_order_copy.default":
        return aten._to_copy.default, {"dtype": node.kwargs.get("dtype")} if node.kwargs.get("dtype") else {}
    if str(target) == "dim_order_ops._clone_dim_order.default":
        return aten.clone.default, {}
    return target, dict(node.kwargs)


def calls(program: ExportedProgram) -> list[Node]:
    """The nodes that call an operator, in the order of the graph."""
    return [node for node in program.graph.nodes if node.op == "call_function"]


def owned_states(program: ExportedProgram, nodes: Collection[Node]) -> dict[str, str]:
    """Mutated buffers that only `nodes` touch, {placeholder: buffer}: the device keeps them between calls."""
    signature = program.graph_signature
    results = zip(signature.output_specs, program.graph.output_node().args[0], strict=True)
    becomes = {spec.target: node for spec, node in results if spec.kind is OutputKind.BUFFER_MUTATION}
    owned = {}
    for spec in signature.input_specs:
        if spec.kind is InputKind.BUFFER and spec.target in becomes:
            node = next(node for node in program.graph.nodes if node.name == spec.arg.name)
            if becomes[spec.target] in nodes and all(user in nodes for user in node.users):
                owned[spec.arg.name] = spec.target
    return owned


def subgraph_of(program: ExportedProgram, nodes: Collection[Node], least: Mapping[str, int] | None = None) -> Subgraph:
    """`nodes` as a program of its own: stored tensors stay constants, what other nodes make are inputs, and what other
    nodes read are outputs. `least`: lower bounds of dynamic sizes by the names of their symbols."""
    signature = program.graph_signature
    specs = {spec.arg.name: spec for spec in signature.input_specs}
    states = owned_states(program, nodes)
    mutated = set(signature.buffers_to_mutate.values())
    numbers = _numbers(program)
    graph, env, inputs = Graph(), {}, []
    for node in program.graph.nodes:
        if node in nodes:
            target, kwargs = translate(node)
            known = numbers if target in _WITH_NUMBERS else {}
            args, kwargs = torch.fx.node.map_arg((node.args, kwargs), lambda n, k=known: k.get(n, env[n]))
            env[node] = graph.create_node("call_function", target, args, kwargs, name=node.name)
        elif node.op != "output" and any(user in nodes for user in node.users):
            spec = specs.get(node.name)
            env[node] = graph.create_node("placeholder", node.name, name=node.name)
            kept = spec and spec.kind in STORED and (spec.target not in mutated or node.name in states)
            inputs.append(_input(node, env, spec if kept else None))
        else:
            continue
        env[node].meta = dict(node.meta)
    outputs = _outputs(program, nodes, env, states)
    graph.output(tuple(env[node] for node, _ in outputs))
    return Subgraph(
        graph,
        ExportGraphSignature(inputs, [spec for _, spec in outputs]),
        program.state_dict,
        program.constants,
        {symbol: _range(symbol, interval, least or {}) for symbol, interval in program.range_constraints.items()},
        {new: old for old, new in env.items()},
    )


def _numbers(program: ExportedProgram) -> dict[Node, float]:
    """The numbers of the model that the edge dialect has made tensors of. While the partitioner decides, values are not
    there: 1 then stands for each, as nothing is decided by them."""
    nodes = {node.name: node for node in program.graph.nodes if node.op == "placeholder"}
    found = {}
    for spec in program.graph_signature.input_specs:
        if spec.kind in STORED and str(spec.target).startswith("_lifted_tensor_constant"):
            value = program.state_dict.get(spec.target, program.constants.get(spec.target))
            if isinstance(value, torch.Tensor) and value.dim() == 0 and value.is_floating_point():
                found[nodes[spec.arg.name]] = 1.0 if isinstance(value, FakeTensor) else value.item()
    return found


def _range(symbol: Any, interval: Any, least: Mapping[str, int]) -> Any:
    return type(interval)(min(interval.lower, least.get(str(symbol), interval.lower)), interval.upper)


def _input(node: Node, env: dict[Node, Node], spec: InputSpec | None) -> InputSpec:
    argument = TensorArgument if isinstance(node.meta.get("val"), torch.Tensor) else SymIntArgument
    arg = argument(name=env[node].name)
    return (
        InputSpec(spec.kind, arg, spec.target, spec.persistent) if spec else InputSpec(InputKind.USER_INPUT, arg, None)
    )


def _outputs(
    program: ExportedProgram, nodes: Collection[Node], env: dict[Node, Node], states: dict[str, str]
) -> list[tuple[Node, OutputSpec]]:
    """Mutations of owned states first, then the program's own results in their order, then what other nodes read."""
    mutations, read = [], {}
    results = program.graph.output_node()
    for spec, node in zip(program.graph_signature.output_specs, results.args[0], strict=True):
        if spec.kind is OutputKind.BUFFER_MUTATION and spec.target in states.values():
            mutations.append((node, OutputSpec(spec.kind, TensorArgument(env[node].name), spec.target)))
        elif isinstance(node, Node) and node in nodes:
            read[node] = None
    for node in program.graph.nodes:
        if node in nodes and any(user not in nodes and user is not results for user in node.users):
            read[node] = None
    return mutations + [(n, OutputSpec(OutputKind.USER_OUTPUT, TensorArgument(env[n].name), None)) for n in read]
