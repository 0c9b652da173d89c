# SPDX-License-Identifier: Apache-2.0
"""PumicePartitioner: tags what PumiceBackend will run; the rest is for other partitioners and ExecuTorch's kernels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from executorch.exir.backend.backend_details import enforcedmethod
from executorch.exir.backend.partitioner import DelegationSpec, Partitioner, PartitionResult
from executorch.exir.backend.utils import tag_constant_data
from torch.export import ExportedProgram

from pumice.executorch.backend import PumiceBackend
from pumice.executorch.options import PartitionOptions
from pumice.executorch.taken_apart import take_apart
from pumice.lowering import sizes
from pumice.lowering.report import unsupported
from pumice.partition.nodes import calls, overload, owned_states
from pumice.partition.planner import plan
from pumice.partition.report import PartitionReport, report
from pumice.passes.tied_constants import merge_tied_constants

aten = torch.ops.aten
# ExecuTorch decomposes these even when a partitioner lists them, with a warning for each.
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

    `report` says after lowering what became of every node, and why; of several methods, that of the last.
    """

    def __init__(self, options: PartitionOptions | Mapping[str, Any] | None = None) -> None:
        super().__init__()
        self.options = PartitionOptions.of(options)
        self.report: PartitionReport | None = None
        self._kept: dict[Any, None] = {}  # operators that were asked for whole
        self._planned: ExportedProgram | None = None
        self._least: dict[str, int] = {}  # lower bounds of dynamic sizes, the largest that any of the programs has
        self._whole: list[Any] = []  # the operators of _planned that stay whole

    def transform_for_pre_decomposition(self, exported_program: ExportedProgram) -> ExportedProgram:
        """A program that ExecuTorch can decompose, without what it would keep whole and Pumice takes apart."""
        return take_apart(merge_tied_constants(exported_program))

    def ops_to_not_decompose(self, ep: ExportedProgram) -> tuple[list[Any], None]:
        """Operators that run whole here: those of which every node of the program will be delegated.

        ExecuTorch calls this for the program before its decomposition, and once more at the end to make sure that
        nothing kept is left. There is no filter by node: ExecuTorch's way to obey one loses strides that views rely on.
        """
        if ep.verifier.dialect != "ATEN":
            return list(self._kept), None
        if self._planned is not ep:
            table = torch.export.default_decompositions()
            accepted = plan(ep).nodes
            split = {node.target for node in calls(ep) if node not in accepted}
            targets = dict.fromkeys(node.target for node in calls(ep) if node.target not in split)
            self._whole = [target for target in targets if target in table and _keeps(target)]
            self._kept.update(dict.fromkeys(self._whole))
            self._planned = ep
            for symbol, interval in sizes.ranges(ep.range_constraints).items():
                if interval.lower.is_finite:  # a number read from a tensor may have no bound
                    self._least[str(symbol)] = max(int(interval.lower), self._least.get(str(symbol), 0))
        return self._whole, None

    @enforcedmethod
    def partition(self, exported_program: ExportedProgram) -> PartitionResult:
        """Tags nodes; the graph stays as it is."""
        kept = [node.name for node in calls(exported_program) if overload(node.target) in self._kept]
        made = plan(exported_program, self.options.min_operators, kept)
        self.report = report(exported_program, made)
        if self.options.strict and self.report.reasons:
            raise unsupported(self.report)
        specs = DelegationSpec(PumiceBackend.__name__, self.options.compile_specs(self._least))
        tags = {}
        placeholders = {node.name: node for node in exported_program.graph.nodes if node.op == "placeholder"}
        for number, partition in enumerate(made.partitions):
            tag = f"pumice_{number}"
            tags[tag] = specs
            for node in partition.nodes:
                node.meta["delegation_tag"] = tag
            for name in owned_states(exported_program, partition.nodes):
                placeholders[name].meta["delegation_tag"] = tag
        tag_constant_data(exported_program)
        return PartitionResult(exported_program, tags)


def _keeps(target: Any) -> bool:
    """Whether ExecuTorch keeps the operator whole when asked to, and there is a point in asking."""
    schema = target._schema
    aliases = any(value.alias_info is not None for value in schema.returns)
    reads = any("Tensor" in str(argument.type) for argument in schema.arguments)  # a factory's result is a constant
    return reads and not schema.is_mutable and not aliases and target not in _NEVER_KEPT
