# SPDX-License-Identifier: Apache-2.0
"""Exported and decomposed graphs for tests of the passes; nothing runs on a device."""

from __future__ import annotations

from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx import Node

from pumice.format.dtypes import device_dtype
from pumice.format.ir import Method
from pumice.lowering.options import ExportOptions
from pumice.lowering.selection import Selection
from pumice.lowering.shapes import Sizes
from pumice.lowering.values import Context
from pumice.passes.decompositions import decompositions
from pumice.passes.normalize import normalize


class Function(torch.nn.Module):
    """A function as a module."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)


def decomposed(function: Any, *args: Any, dynamic_shapes: Any = None) -> ExportedProgram:
    """The program of a module or function, as pumice.export has it before its passes."""
    module = function if isinstance(function, torch.nn.Module) else Function(function)
    program = torch.export.export(module.eval(), args, dynamic_shapes=dynamic_shapes)
    return program.run_decompositions(decompositions(dropout=True))


def normalized(function: Any, *args: Any, **more: Any) -> tuple[ExportedProgram, dict[Node, str]]:
    program = decomposed(function, *args, **more)
    return program, normalize(program, device_dtype)


def selection(program: ExportedProgram) -> Selection:
    return Selection(Context(program, ExportOptions(), Sizes(Method(), program.range_constraints, {}, {})))


def live(program: ExportedProgram, removed: dict[Node, str]) -> list[str]:
    """What is left of the graph: ["add", "mul", ...]."""
    return [
        node.target.__name__.split(".")[0]
        for node in program.graph.nodes
        if node.op == "call_function" and node not in removed
    ]
