# SPDX-License-Identifier: Apache-2.0
"""Chooses what runs: demand starts at the outputs and the mutated buffers and goes back to the inputs.

Each demanded node is lowered by the pattern that ends in it (pumice/fusion), else by its lowering (pumice/ops); both
demand what they read. A node without demand is part of the operator of another ("fused"), or no result needs it.
Operator calls come out in the order of the graph, the calls of one node in the order in which its lowering made them.
"""

from __future__ import annotations

import heapq
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx import Node

from pumice.errors import Error
from pumice.format import ir
from pumice.lowering.call import Call, Emitted
from pumice.lowering.instead import instead
from pumice.lowering.quantized_names import is_dequantize
from pumice.lowering.ref import Ref, Result
from pumice.lowering.registry import Refused, lowering_for, patterns_for
from pumice.lowering.report import Row
from pumice.lowering.signature import encode
from pumice.lowering.source import source
from pumice.lowering.subgraph import Subgraph
from pumice.lowering.values import Context, Values


@dataclass
class Chosen:
    """What runs; no value of a weight was read. `refusals`: of inputs and outputs; selection.refused: of nodes."""

    method: ir.Method
    selection: Selection
    inputs: list[Node]
    outputs: list[Any]  # (node, its OutputSpec)
    updates: list[tuple[Node, Node]]  # (state or input, the node that it becomes)
    refusals: list[Row]


class Selection(Values):
    """The walk over one program; `select` fills `blocks`, `refused` and `fused_by`."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.blocks: dict[Node, list[Emitted]] = {}
        self.refused: dict[Node, str] = {}
        self.fused_by: dict[Node, Node] = {}
        self.order = {node: index for index, node in enumerate(context.program.graph.nodes)}
        self._waiting: list[tuple[int, Node]] = []
        self._demanded: set[Node] = set()
        self._guards = _Guards(context.program)

    # ---- for Call ----------------------------------------------------------------------------------------------------

    def encode(self, op: str, version: int, args: list[Any], outputs: list[Ref]) -> list[Any]:
        """The arguments as the file holds them; raises Refused when the operator cannot run with them."""
        return encode(op, version, args, outputs, self.sizes)

    def match(self, call: Call) -> Callable[[], Any] | None:
        """What emits the fusion pattern that ends in the node of `call`; None where no pattern matches."""
        for pattern in patterns_for(call.target, self.options.without_fusion):
            looked = len(call.looked_through)
            if (emit := pattern(call)) is not None:
                return emit
            del call.looked_through[looked:]  # what does not match fuses nothing
        return None

    def is_left_out(self, pattern: str) -> bool:
        """Whether ExportOptions.without_fusion names the pattern."""
        return pattern in self.options.without_fusion

    # ---- the walk ----------------------------------------------------------------------------------------------------

    def demand(self, node: Node) -> None:
        """Asks for the results of `node` (nothing to do for inputs, states and constants)."""
        if node.target is operator.getitem:
            node = node.args[0]
        if node.op != "placeholder" and node not in self.constants and node not in self._demanded:
            self._demanded.add(node)
            heapq.heappush(self._waiting, (-self.order[node], node))

    def select(self) -> None:
        """Lowers every demanded node, last first; a node's turn comes after all that could demand it."""
        while self._waiting:
            node = heapq.heappop(self._waiting)[1]
            try:
                self.blocks[node] = self._lower(node)
            except Refused as refusal:
                self.refused[node] = str(refusal)
                self._visit_inputs(node)

    def _lower(self, node: Node) -> list[Emitted]:
        if node.op != "call_function":
            raise Refused(f"{node.op} nodes (submodules, control flow) are not supported")
        lowering = lowering_for(node.target)
        if lowering is None:
            raise Refused(_no_lowering(node))
        call = Call(self, node)
        try:
            with self._guards:
                emit = self.match(call)
                emit() if emit is not None else lowering(call)
        except Refused:
            raise
        except Exception as error:
            raise Error(
                f"the lowering of {node.target} failed at {source(node, self.origins)}: {error!r}",
                stage="lower",
                path=node.name,
            ) from error
        for emitted in call.emitted:
            for ref in refs(emitted.args):
                if isinstance(ref.made_by, Result):
                    self.demand(ref.made_by.node)
        for other in call.looked_through:
            self.fused_by.setdefault(other, node)
        return call.emitted

    def _visit_inputs(self, node: Node) -> None:
        """After a refusal: visits the inputs all the same, so that the report has every refusal of the model."""
        for before in node.all_input_nodes:
            if is_dequantize(before.target):
                self._visit_inputs(before)
            elif _makes_tensor(before):
                self.demand(before)


class _Guards:
    """Notices a lowering that decided by the example's value of a symbolic size: it would be wrong for other values."""

    def __init__(self, program: ExportedProgram | Subgraph) -> None:
        self._env = None
        for node in program.graph.nodes:
            value = node.meta.get("val")
            sizes = [value] if isinstance(value, torch.SymInt) else getattr(value, "shape", ())
            for size in sizes:
                if isinstance(size, torch.SymInt):
                    self._env = size.node.shape_env

    def _count(self) -> int:
        return len(self._env.guards) + self._env.counter["ignored_backward_guard"] if self._env else 0

    def __enter__(self) -> None:
        self._before = self._count()

    def __exit__(self, kind: Any, *_: Any) -> None:
        if kind is None and self._count() != self._before:
            guard = self._env.guards[-1].expr if self._env.guards else "a guard"
            raise Refused(f"it would hold only for some input sizes: {guard}")


def refs(args: list[Any]) -> list[Ref]:
    """The tensors among encoded arguments."""
    return [item for arg in args for item in (arg if isinstance(arg, list) else [arg]) if isinstance(item, Ref)]


def _makes_tensor(node: Node) -> bool:
    value = node.meta.get("val")
    return isinstance(value, torch.Tensor) or (isinstance(value, list | tuple) and bool(value))


def _no_lowering(node: Node) -> str:
    advice = instead(node.target)
    if str(node.target) == "with_effects":  # (token, operator, arguments)
        return f"{node.args[1]} has an effect outside of its results: {advice}"
    if isinstance(node.target, torch._ops.HigherOrderOperator):
        return f"{node.target} (control flow or a wrapped region) is not supported: {advice}"
    if is_dequantize(node.target):
        users = ", ".join(sorted({str(user.target) for user in node.users}))
        return f"a quantized tensor is used by {users}, which has no quantized form here"
    return f"no operator computes this; {advice}"
