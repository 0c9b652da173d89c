# SPDX-License-Identifier: Apache-2.0
"""For which sizes of its inputs a captured program holds: what torch.export assumed of dynamic dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sympy
import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, TensorArgument

from pumice.lowering.sizes import affine, expression, ranges

_MOST_KEPT = 4096  # answers


class Sizes:
    """Built after everything that looks at the program, each of which may assume more."""

    def __init__(self, program: ExportedProgram) -> None:
        nodes = {node.name: node for node in program.graph.nodes if node.op == "placeholder"}
        specs = [spec for spec in program.graph_signature.input_specs if spec.kind is InputKind.USER_INPUT]
        tensors = [nodes[spec.arg.name].meta["val"] for spec in specs if isinstance(spec.arg, TensorArgument)]
        self._dims = [[expression(size) for size in tensor.shape] for tensor in tensors]
        self._ranges = ranges(program.range_constraints)
        symbolic = [s for tensor in tensors for s in tensor.shape if isinstance(s, torch.SymInt)]
        self._guards = [guard.expr for guard in symbolic[0].node.shape_env.guards] if symbolic else []
        self._known: dict[Any, bool] = {}

    @property
    def dynamic(self) -> bool:
        """Whether any dimension is."""
        return any(not dim.is_Integer for dims in self._dims for dim in dims)

    def hold(self, inputs: Sequence[torch.Tensor]) -> bool:
        """Whether the program is right for tensors of these shapes."""
        shapes = tuple(tuple(tensor.shape) for tensor in inputs)
        if shapes not in self._known:
            if len(self._known) >= _MOST_KEPT:
                self._known.clear()
            self._known[shapes] = self._hold(shapes)
        return self._known[shapes]

    def _hold(self, shapes: Sequence[Sequence[int]]) -> bool:
        if [len(shape) for shape in shapes] != [len(dims) for dims in self._dims]:
            return False
        pairs = [
            (d, size)
            for dims, shape in zip(self._dims, shapes, strict=True)
            for d, size in zip(dims, shape, strict=True)
        ]
        values = {}
        for dim, size in pairs:
            if form := affine(dim):  # factor * symbol + offset
                values[form[0]] = (size - form[2]) // form[1]
        inside = all(
            interval.lower <= values[symbol] <= interval.upper
            for symbol, interval in self._ranges.items()
            if symbol in values
        )
        return (
            inside
            and all(dim.xreplace(values) == size for dim, size in pairs)
            and all(guard.xreplace(values) in (True, sympy.true) for guard in self._guards)
        )
