# SPDX-License-Identifier: Apache-2.0
"""Some nodes of an exported program, lowered by themselves: has what `lower` reads of an ExportedProgram."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch.export.graph_signature import ExportGraphSignature
from torch.fx import Graph, Node


@dataclass(frozen=True)
class Subgraph:
    """`graph` is a copy with ATen operators; inputs and outputs are plain tensors, named after their nodes.

    `origin`: for every node of `graph` but those that passes add, the node of the program that it stands for.
    """

    graph: Graph
    graph_signature: ExportGraphSignature
    state_dict: Mapping[str, torch.Tensor]
    constants: Mapping[str, Any]
    range_constraints: Mapping[Any, Any]
    origin: Mapping[Node, Node]

    def origin_of(self, node: Node) -> Node:
        """The same of any node: one that a pass added stands for the node that it was added for."""
        while node not in self.origin:
            node = node.meta["stands_for"]
        return self.origin[node]
