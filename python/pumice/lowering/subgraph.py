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

    `origin`: for every node of `graph`, the node of the program that it stands for.
    """

    graph: Graph
    graph_signature: ExportGraphSignature
    state_dict: Mapping[str, torch.Tensor]
    constants: Mapping[str, Any]
    range_constraints: Mapping[Any, Any]
    origin: Mapping[Node, Node]
