# SPDX-License-Identifier: Apache-2.0
"""A program with its partitions -> a module of PyTorch that calls the device for each partition."""

from __future__ import annotations

import heapq
import operator
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, OutputKind
from torch.fx import Graph, GraphModule, Node

from pumice.lowering.subgraph import Subgraph
from pumice.runtime.session import Session


class OnDevice(torch.nn.Module):
    """A partition: tensors in, a list of tensors out, with the order of dimensions in memory that eager gives them."""

    def __init__(self, session: Session, results: Sequence[torch.Tensor]) -> None:
        super().__init__()
        self.session = session
        self._layouts = [_Layout(result) for result in results]

    def forward(self, *tensors: torch.Tensor) -> list[torch.Tensor]:
        """Runs the partition."""
        results = self.session.run_flat(list(tensors))
        return [of(torch.from_numpy(result)) for of, result in zip(self._layouts, results, strict=True)]


class _Layout:
    """The strides of a tensor, as the order of its dimensions and those that are expanded."""

    def __init__(self, example: torch.Tensor) -> None:
        strides = [_size(stride) for stride in example.stride()]
        self._expanded = [dim for dim, stride in enumerate(strides) if stride == 0 and _size(example.shape[dim]) != 1]
        self._order = sorted(range(len(strides)), key=lambda dim: -strides[dim])
        self._back = [self._order.index(dim) for dim in range(len(strides))]
        self._plain = not self._expanded and self._order == sorted(self._order)

    def __call__(self, result: torch.Tensor) -> torch.Tensor:
        if self._plain:
            return result
        shape = result.shape
        for dim in self._expanded:
            result = result.narrow(dim, 0, min(1, shape[dim]))
        return result.permute(self._order).contiguous().permute(self._back).expand(shape)


def _size(size: Any) -> int:
    """A number to compare; a symbol as in the example."""
    return size if isinstance(size, int) else int(size.node.hint or 1)


def ends_of(subgraph: Subgraph, program: ExportedProgram) -> tuple[list[Node], list[Node]]:
    """The nodes of the program whose tensors a partition's file takes, and those that it gives, in its order."""
    nodes = {node.name: node for node in program.graph.nodes}  # a subgraph's ends have their names
    signature = subgraph.graph_signature
    inputs = [nodes[spec.arg.name] for spec in signature.input_specs if spec.kind is InputKind.USER_INPUT]
    outputs = [nodes[spec.arg.name] for spec in signature.output_specs if spec.kind is OutputKind.USER_OUTPUT]
    return [node for node in inputs if isinstance(node.meta.get("val"), torch.Tensor)], outputs


def assemble(program: ExportedProgram, parts: Sequence[tuple[Subgraph, frozenset[Node], Session]]) -> GraphModule:
    """The module takes what the program's graph takes, and returns what that returns."""
    graph, env = Graph(), dict[Node, Node]()
    modules = dict(program.graph_module.named_children())
    part_of = {node: number for number, (_, nodes, _) in enumerate(parts) for node in nodes}
    for unit in _ordered(program.graph, part_of):
        if isinstance(unit, Node):
            env[unit] = graph.node_copy(unit, lambda node: env[node])
            continue
        subgraph, _, session = parts[unit]
        inputs, outputs = ends_of(subgraph, program)
        modules[f"pumice_{unit}"] = OnDevice(session, [node.meta["val"] for node in outputs])
        call = graph.call_module(f"pumice_{unit}", tuple(env[node] for node in inputs))
        for number, node in enumerate(outputs):
            env[node] = graph.call_function(operator.getitem, (call, number))
    for node in program.graph.find_nodes(op="get_attr"):
        modules.setdefault(node.target, getattr(program.graph_module, node.target))
    return GraphModule(modules, graph)


def _ordered(graph: Graph, part_of: dict[Node, int]) -> Iterable[Node | int]:
    """Nodes outside of partitions, and the numbers of partitions, each after what it reads; else as in the graph."""
    unit = {node: part_of.get(node, node) for node in graph.nodes}
    place: dict[Node | int, int] = {}
    reads: dict[Node | int, set[Node | int]] = {}
    users: dict[Node | int, set[Node | int]] = {}
    for index, node in enumerate(graph.nodes):
        own = unit[node]
        place.setdefault(own, index)
        before = {unit[other] for other in node.all_input_nodes} - {own}
        reads.setdefault(own, set()).update(before)
        for other in before:
            users.setdefault(other, set()).add(own)
    ready = [(place[own], own) for own, before in reads.items() if not before]
    heapq.heapify(ready)
    while ready:
        own = heapq.heappop(ready)[1]
        yield own
        for user in users.get(own, ()):
            reads[user].discard(own)
            if not reads[user]:
                heapq.heappush(ready, (place[user], user))
