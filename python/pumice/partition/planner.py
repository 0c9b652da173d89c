# SPDX-License-Identifier: Apache-2.0
"""Which nodes run on the device, and in which partitions: the same lowerings decide as in pumice.export.

Candidates are grouped into the largest partitions without cycles; each is lowered as it will be later, and what it
refuses is taken out, until every partition is accepted whole. The values of weights are not read.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import torch
from torch._ops import HigherOrderOperator
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, OutputKind
from torch.fx import Node
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from torch.fx.passes.operator_support import OperatorSupportBase

import pumice.fusion
import pumice.ops  # noqa: F401 (fills the table of lowerings)
from pumice.format.dtypes import TORCH, device_dtype
from pumice.lowering.lower import choose
from pumice.lowering.registry import Refused
from pumice.lowering.selection import Chosen
from pumice.lowering.subgraph import Subgraph
from pumice.partition.nodes import calls, subgraph_of
from pumice.partition.plan import OPTIONS, Partition, Plan
from pumice.passes.items import read_from_tensors
from pumice.passes.llama import is_update
from pumice.passes.normalize import normalize

_FREE = {"view"}  # operators that run nothing: a partition of these alone is not worth a copy


def plan(
    program: ExportedProgram,
    min_operators: int = 1,
    whole: Collection[str] = (),
    outside: Mapping[Node, str] | None = None,
) -> Plan:
    """`whole`: names of nodes that must be delegated, however small their partition is. `outside`: nodes that must not
    be, and why."""
    result = Plan([], dict(outside or {}))
    numbers = read_from_tensors(program.graph) - result.reasons.keys()
    candidates = {node for node in calls(program) if node in numbers or _eligible(node, result.reasons)}
    _drop(candidates, lower_subgraph(program, frozenset(candidates))[1], result.reasons)
    known: dict[frozenset[Node], tuple[Partition, dict[Node, str]]] = {}
    while True:
        groups = _groups(program, candidates)
        for nodes in groups:
            if nodes not in known:
                known[nodes] = lower_subgraph(program, nodes)
        refused = {node: why for nodes in groups for node, why in known[nodes][1].items()}
        if not refused:
            break
        _drop(candidates, refused, result.reasons)
    for partition in (known[nodes][0] for nodes in groups):
        count = sum(op not in _FREE for op in partition.operators)
        if count >= min_operators or any(node.name in whole for node in partition.nodes):
            result.partitions.append(partition)
        else:
            why = f"its partition has {count} operators, fewer than min_operators={min_operators}"
            result.reasons.update(dict.fromkeys(partition.nodes, why))
    return result


def lower_subgraph(program: ExportedProgram, nodes: frozenset[Node]) -> tuple[Partition, dict[Node, str]]:
    """Decides for `nodes` as a program of their own; {node: why} of those that cannot be in it."""
    subgraph = subgraph_of(program, nodes)
    removed = normalize(subgraph, lambda dtype: device_dtype(dtype, OPTIONS.bf16, OPTIONS.float64))
    chosen = choose(subgraph, OPTIONS, {}, [])
    refused = {subgraph.origin_of(node): why for node, why in chosen.selection.refused.items()}
    if not refused:
        refused = _boundary(subgraph, chosen, nodes)
    return Partition(nodes, subgraph, chosen, removed), refused


def _boundary(subgraph: Subgraph, chosen: Chosen, nodes: frozenset[Node]) -> dict[Node, str]:
    """Inputs and outputs are in the memory of what runs around it: their dtypes and shapes must be ours, too."""
    refused: dict[Node, str] = {}
    names = {node.name: node for node in subgraph.graph.nodes}
    ends = [
        (names[s.arg.name], "input") for s in subgraph.graph_signature.input_specs if s.kind is InputKind.USER_INPUT
    ]
    outputs = [s for s in subgraph.graph_signature.output_specs if s.kind is OutputKind.USER_OUTPUT]
    ends += [(names[spec.arg.name], "result") for spec in outputs]
    for node, what in ends:
        why = _unsupported_reason(node, what, chosen)
        if why:
            origin = subgraph.origin_of(node)
            blamed = [origin] if what == "result" else [user for user in origin.users if user in nodes]
            refused.update(dict.fromkeys(blamed, f"the {what} {node.name} of its partition {why}"))
    return refused


def _unsupported_reason(node: Node, what: str, chosen: Chosen) -> str:
    value = node.meta.get("val")
    if isinstance(value, torch.SymInt | int) and what == "input":
        return ""  # a size: not needed, the file computes it from the shapes
    if not isinstance(value, torch.Tensor):
        return f"is a {type(value).__name__}, not a tensor"
    try:
        ref = chosen.selection.ref(node)
        for size in value.shape:
            chosen.selection.sizes.check(size)
    except Refused as refusal:
        return f"cannot cross: {refusal}"
    return "" if TORCH[ref.dtype] is value.dtype else f"is {value.dtype}, which the device keeps as {ref.dtype.name}"


def _eligible(node: Node, reasons: dict[Node, str]) -> bool:
    """The order of dimensions in memory (channels_last) is no matter: the delegate copies what crosses in another."""
    value = node.meta.get("val")
    if isinstance(node.target, HigherOrderOperator) and node.target.name() == "executorch_call_delegate":
        reasons[node] = f"{_backend(node)} has it: an earlier partitioner of the list"
    elif is_update(node):
        pass
    elif any(n.op == "get_attr" for n in node.all_input_nodes) or isinstance(node.target, HigherOrderOperator):
        reasons[node] = "control flow or a wrapped region is not supported"
    elif isinstance(value, torch.SymInt | torch.SymFloat | torch.SymBool | int | float | bool):
        reasons[node] = "a size, computed on the host"
    elif not isinstance(value, torch.Tensor | list | tuple):
        reasons[node] = "it makes no tensor"
    return node not in reasons


def _backend(call: Node) -> str:
    module = getattr(call.graph.owning_module, call.args[0].target, None)
    return getattr(module, "backend_id", "another backend")


def _drop(candidates: set[Node], refused: dict[Node, str], reasons: dict[Node, str]) -> None:
    for node, why in refused.items():
        reasons.setdefault(node, why)
        candidates.discard(node)


def _groups(program: ExportedProgram, candidates: set[Node]) -> list[frozenset[Node]]:
    class Support(OperatorSupportBase):
        def is_node_supported(self, _: Any, node: Node) -> bool:
            return node in candidates

    partitioner = CapabilityBasedPartitioner(program.graph_module, Support(), allows_single_node_partition=True)
    return [frozenset(partition.nodes) for partition in partitioner.propose_partitions()]
