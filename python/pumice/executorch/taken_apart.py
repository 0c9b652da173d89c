# SPDX-License-Identifier: Apache-2.0
"""What pumice.export makes of other operators, for ExecuTorch: the same tables, before ExecuTorch's own."""

from __future__ import annotations

import torch
from executorch.exir.program._program import _default_decomposition_table
from torch.export import ExportedProgram

from pumice.decompositions.table import our_own
from pumice.lowering.registry import lowering_for, targets
from pumice.partition.nodes import calls
from pumice.passes.complex_pairs import complex_to_pairs, is_complex
from pumice.passes.decompositions import decompositions

aten = torch.ops.aten


def not_in_core_aten() -> list[torch._ops.OpOverload]:
    """Overloads that run whole here, and that ExecuTorch refuses before it asks a partitioner: for
    EdgeCompileConfig(_core_aten_ops_exception_list=...)."""
    table = _default_decomposition_table()
    names = [target for target in targets() if isinstance(target, torch._ops.OpOverload) and target.namespace == "aten"]
    return [t for t in names if torch.Tag.core not in t.tags and t not in table and not t.is_view]


def _hypot(self: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """The larger one times a root of numbers from 1 to 2, so that no square overflows."""
    a, b = torch.broadcast_tensors(self.abs(), other.abs())
    large, small = torch.maximum(a, b), torch.minimum(a, b)
    plain = (large == 0) | (large == torch.inf)
    ratio = torch.where(plain, 0.0, small / torch.where(plain, 1.0, large))
    return torch.where((a == torch.inf) | (b == torch.inf), torch.inf, large * (1 + ratio * ratio).sqrt())


# Of what the tables make, these are not in core ATen either.
_BY_CORE = {aten.hypot.default: _hypot}


def take_apart(program: ExportedProgram) -> ExportedProgram:
    """The program in the form that pumice.export lowers where it has complex tensors or an operator of
    pumice/decompositions, perhaps inside of another one; else itself, as ExecuTorch made it."""
    if all(_is_known(node) for node in calls(program)):
        return program
    table = decompositions(dropout=False)
    ours = our_own()
    probe = program.run_decompositions({target: made for target, made in table.items() if target not in ours})
    if not any(node.target in ours or is_complex(node) for node in calls(probe)):
        return program
    program = program.run_decompositions(table)
    complex_to_pairs(program)
    return program.run_decompositions(_BY_CORE)


def _is_known(node: torch.fx.Node) -> bool:
    return not is_complex(node) and lowering_for(node.target) is not None
