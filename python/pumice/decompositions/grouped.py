# SPDX-License-Identifier: Apache-2.0
"""Products of groups of rows, each with a matrix of its own: the experts of transformers' models, as they are."""

from __future__ import annotations

from typing import Any

import torch

import pumice.passes.experts  # noqa: F401 (registers the operator)
from pumice.decompositions.orders import places
from pumice.decompositions.table import takes_apart
from pumice.lowering.operands import GATE_ROWS

aten = torch.ops.aten


@takes_apart("transformers.grouped_mm_fallback.default")
def rows_of_groups(input: torch.Tensor, weight: torch.Tensor, offs: torch.Tensor) -> torch.Tensor:
    """Rows [S, K] in order of their groups, of which offs [E] has the ends, by weight [E, K, N]. Rows after the last
    group give 0."""
    groups, k, n = weight.shape
    rows = torch.arange(input.shape[0])
    group = places(offs.to(torch.int64), rows, True)
    chosen = group.clamp(max=groups - 1)
    if n % GATE_ROWS == 0 and k % 8 == 0:  # the kernels that read only the matrices of groups that have rows
        stacked = weight.transpose(1, 2).reshape(groups * n, k)
        made = torch.ops.pumice.expert_linear(input, stacked, chosen.unsqueeze(1), None, groups, "none", False)
        made = made.squeeze(1)
    else:
        made = torch.bmm(input.unsqueeze(1), weight[chosen]).squeeze(1)
    return torch.where((group < groups).unsqueeze(1), made, torch.zeros((), dtype=made.dtype))


@takes_apart(aten._grouped_mm.default)
def grouped_mm(
    self: torch.Tensor,
    mat2: torch.Tensor,
    offs: torch.Tensor | None = None,
    bias: torch.Tensor | None = None,
    out_dtype: torch.dtype | None = None,
) -> Any:
    """Its other forms are those of gradients, or one product of a batch."""
    if self.dim() != 2 or mat2.dim() != 3 or offs is None or bias is not None or out_dtype not in (None, self.dtype):
        return NotImplemented
    return rows_of_groups(self, mat2, offs)
