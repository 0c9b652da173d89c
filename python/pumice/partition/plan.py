# SPDX-License-Identifier: Apache-2.0
"""What the partitioner has decided: the partitions that run on the device, and why other nodes do not."""

from __future__ import annotations

from dataclasses import dataclass, field

from torch.fx import Node

from pumice.lowering.options import ExportOptions
from pumice.lowering.selection import Chosen
from pumice.lowering.subgraph import Subgraph

OPTIONS = ExportOptions()


@dataclass(frozen=True)
class Partition:
    """An accepted partition: its nodes in the program, and how it was lowered."""

    nodes: frozenset[Node]
    subgraph: Subgraph
    chosen: Chosen
    removed: dict[Node, str]

    @property
    def operators(self) -> list[str]:
        """The names of the operators that are called."""
        return [emitted.op for block in self.chosen.selection.blocks.values() for emitted in block]


@dataclass
class Plan:
    """The partitions of a program."""

    partitions: list[Partition]
    reasons: dict[Node, str] = field(default_factory=dict)  # of the nodes that stay outside

    @property
    def nodes(self) -> set[Node]:
        """The nodes of all partitions."""
        return {node for partition in self.partitions for node in partition.nodes}
