# SPDX-License-Identifier: Apache-2.0
"""Which nodes of the model each dispatch computes: the debug handle map of a delegate, for ETDump and its Inspector."""

from __future__ import annotations

from pumice.format import ir
from pumice.lowering.report import Report
from pumice.lowering.subgraph import Subgraph


def debug_handles(subgraph: Subgraph, program: ir.Program, report: Report) -> dict[str, tuple[int, ...]]:
    """{"#3 linear": the debug handles of the nodes that operator call 3 computes}, as runtime/executorch/trace.h says.

    A node that was fused belongs to the call of the node that computes it.
    """
    handle = {node.name: node.meta.get("debug_handle") for node in subgraph.graph.nodes}
    fused_by = {row.node: row.detail for row in report.rows if row.status == "fused"}
    handles: dict[str, set[int]] = {}
    for row in report.rows:
        if handle[row.node]:
            handles.setdefault(fused_by.get(row.node, row.node), set()).add(handle[row.node])
    callers = [row.node for row in report.rows for _ in row.operators]  # calls are in the order of their nodes
    return {
        f"#{number} {call.op}": tuple(sorted(handles[node]))
        for number, (call, node) in enumerate(zip(program.methods[0].ops, callers, strict=False))
        if node in handles
    }
