# SPDX-License-Identifier: Apache-2.0
"""What became of every node of a program: on the device, in which partition, or on the CPU and why."""

from __future__ import annotations

import operator
from collections.abc import Mapping

from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, OutputKind
from torch.fx import Node

from pumice.format.text import counted
from pumice.lowering.lower import report_row
from pumice.lowering.report import Report, Row
from pumice.lowering.source import source
from pumice.partition.nodes import calls, overload
from pumice.partition.plan import Partition, Plan


class PartitionReport(Report):
    """A Report whose refused nodes run on the CPU; `partitions` has a line for each partition."""

    def __init__(self, rows: list[Row], notes: list[str], partitions: list[str]) -> None:
        super().__init__(rows, notes)
        self.partitions = partitions

    def head(self) -> list[str]:
        """How many partitions there are, and a line for each."""
        count = len(self.partitions)
        return [f"{counted(count, 'partition')} on the device", *self.partitions]

    def __str__(self) -> str:
        return "\n".join([*self.head(), super().__str__()])


def report(program: ExportedProgram, plan: Plan, origins: Mapping[str, str] | None = None) -> PartitionReport:
    """One row for each node of the program, one line for each partition. `origins`: as of `source`."""
    rows: dict[Node, list[Row]] = {}
    for partition in plan.partitions:
        for node in partition.subgraph.graph.nodes:
            if node.op == "call_function" and (origin := partition.subgraph.origin_of(node)) in partition.nodes:
                row = report_row(node, partition.chosen.selection, partition.removed)
                rows.setdefault(origin, []).append(row)
    listed = [node for node in calls(program) if node in rows or node.target is not operator.getitem]
    ordered = [
        row for node in listed for row in rows.get(node) or [_outside(node, plan.reasons.get(node, ""), origins)]
    ]
    notes = dict.fromkeys(note for partition in plan.partitions for note in partition.chosen.selection.notes)
    return PartitionReport(ordered, list(notes), [_line(n, partition) for n, partition in enumerate(plan.partitions)])


def _outside(node: Node, reason: str, origins: Mapping[str, str] | None) -> Row:
    status = "size" if reason.startswith("a size") else "refused"
    return Row(node.name, str(overload(node.target)), status, reason or "on the CPU", source=source(node, origins))


def _line(number: int, partition: Partition) -> str:
    signature = partition.subgraph.graph_signature
    names = {node.name: node for node in partition.subgraph.graph.nodes}
    inputs = [names[s.arg.name] for s in signature.input_specs if s.kind is InputKind.USER_INPUT]
    outputs = [names[s.arg.name] for s in signature.output_specs if s.kind is OutputKind.USER_OUTPUT]
    crossing = f"{_bytes(inputs)} bytes in, {_bytes(outputs)} out per call of the example's size"
    held = f"{counted(len(partition.nodes), 'node')}, {counted(len(partition.operators), 'operator')}"
    return f"  pumice_{number}: {held}; {crossing}"


def _bytes(nodes: list[Node]) -> int:
    total = 0
    for value in (node.meta.get("val") for node in nodes):
        size = value.element_size() if hasattr(value, "element_size") else 0
        for length in getattr(value, "shape", ()):
            size *= length if isinstance(length, int) else int(length.node.hint or 1)
        total += size
    return total
