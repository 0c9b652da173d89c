# SPDX-License-Identifier: Apache-2.0
"""PumicePartitioner: tags what PumiceBackend will run; the rest goes on to the next partitioner or ExecuTorch's kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from executorch.exir.backend.backend_details import enforcedmethod
from executorch.exir.backend.partitioner import DelegationSpec, Partitioner, PartitionResult
from executorch.exir.backend.utils import tag_constant_data
from torch.export import ExportedProgram
from torch.fx import Node

from pumice.executorch.backend import PumiceBackend
from pumice.executorch.edge import calls, overload, owned_states
from pumice.executorch.islands import plan
from pumice.executorch.options import PartitionOptions
from pumice.executorch.report import PartitionReport, report
from pumice.exporter import unsupported

aten = torch.ops.aten
# ExecuTorch decomposes these whatever a partitioner says, with a warning for each.
_NEVER_KEPT = {
    aten._to_copy.default,
    aten.mul.Tensor,
    aten.add.Tensor,
    aten.sub.Tensor,
    aten.div.Tensor,
    aten.item.default,
    aten._local_scalar_dense.default,
    aten.unbind.int,
    aten.split_with_sizes.default,
}


class PumicePartitioner(Partitioner):
    """For to_edge_transform_and_lower(..., partitioner=[PumicePartitioner(options)]); others may follow in the list.

    `report` says after lowering what became of every node, and why.
    """

    def __init__(self, options: PartitionOptions | Mapping[str, Any] | None = None) -> None:
        super().__init__()
        self.options = PartitionOptions.of(options)
        self.report: PartitionReport | None = None
        self._kept: dict[Any, None] = {}  # operators that were asked for whole
        self._planned: ExportedProgram | None = None
        self._whole: frozenset[str] = frozenset()  # the nodes of _planned that stay whole

    def ops_to_not_decompose(self, ep: ExportedProgram) -> tuple[list[Any], Callable[[Node], bool] | None]:
        """Operators that run whole here, for those nodes that will be delegated; the others are decomposed.

        ExecuTorch calls this for the program before its decomposition, and once more at the end to make sure that
        nothing kept is left.
        """
        if ep.verifier.dialect != "ATEN":
            return list(self._kept), lambda _: True
        if self._planned is not ep:
            table = torch.export.default_decompositions()
            accepted = plan(ep).nodes
            whole = [node for node in calls(ep) if node in accepted and node.target in table and _keeps(node.target)]
            self._whole = frozenset(node.name for node in whole)
            self._kept.update(dict.fromkeys(node.target for node in whole))
            self._planned = ep
        return list(self._kept), lambda node, whole=self._whole: node.name in whole

    @enforcedmethod
    def partition(self, exported_program: ExportedProgram) -> PartitionResult:
        """Tags nodes; the graph stays as it is."""
        kept = [node.name for node in calls(exported_program) if overload(node.target) in self._kept]
        made = plan(exported_program, self.options.min_operators, kept)
        self.report = report(exported_program, made)
        if self.options.strict and self.report.reasons:
            raise unsupported(self.report)
        specs = DelegationSpec(PumiceBackend.__name__, self.options.compile_specs())
        tags = {}
        placeholders = {node.name: node for node in exported_program.graph.nodes if node.op == "placeholder"}
        for number, island in enumerate(made.islands):
            tag = f"pumice_{number}"
            tags[tag] = specs
            for node in island.nodes:
                node.meta["delegation_tag"] = tag
            for name in owned_states(exported_program, island.nodes):
                placeholders[name].meta["delegation_tag"] = tag
        tag_constant_data(exported_program)
        return PartitionResult(exported_program, tags)


def _keeps(target: Any) -> bool:
    """Whether ExecuTorch keeps the operator whole when asked to."""
    schema = target._schema
    aliases = any(value.alias_info is not None for value in schema.returns)
    return not schema.is_mutable and not aliases and target not in _NEVER_KEPT
