# SPDX-License-Identifier: Apache-2.0
"""Rows of groups, each by the matrix of its group."""

from __future__ import annotations

import pytest
import torch
from support.budget import Budget
from support.graphs import Function
from support.many import normal
from torch.nn import functional as F
from transformers.integrations import moe  # noqa: F401 (registers its operator)

import pumice

grouped = torch.ops.transformers.grouped_mm_fallback
ENDS = [[3, 3, 8, 11], [0, 0, 0, 0], [11, 11, 11, 11], [1, 2, 3, 4]]  # of 11 rows; the last ones leave some out


def budget(k: int, dtype: torch.dtype) -> Budget:
    unit = 2.0**-24 if dtype is torch.float32 else 2.0**-11
    return Budget(rtol=unit, of_max=4 * k * 2.0**-24, why="sums of k products in f32, each by its own order; rounded")


@pytest.mark.parametrize("shape", [(24, 32), (24, 33), (7, 16), (1, 1)])  # of the experts' kernels, and not
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_constant_matrices(e2e, shape, dtype) -> None:
    weight, rows = normal(4, *shape, dtype=dtype), normal(11, shape[0], dtype=dtype, seed=2)
    calls = [(rows, torch.tensor(ends, dtype=torch.int32)) for ends in ENDS]
    module = Function(lambda x, ends: grouped(x, weight, ends))
    program = e2e.check(module, *calls[0], runs=calls[1:], budget=budget(shape[0], dtype), reference="eager")
    assert ("expert_linear" in program.report.operators) == (shape == (24, 32))


def test_matrices_that_are_transposed(e2e) -> None:
    """As models have them."""
    weight, rows = normal(4, 32, 24), normal(11, 24, seed=2)
    module = Function(lambda x, ends: grouped(x, weight.transpose(1, 2), ends))
    program = e2e.check(module, rows, torch.tensor(ENDS[0]), budget=budget(24, torch.float32), reference="eager")
    assert program.report.operators["expert_linear"] == 1


def test_bf16() -> None:
    """torch's own operator, which it exports in bf16 alone."""
    rows, weight, ends = normal(11, 16), normal(4, 16, 32), torch.tensor(ENDS[0], dtype=torch.int32)
    module = Function(lambda x: F.grouped_mm(x.bfloat16(), weight.bfloat16(), offs=ends).float())
    got = pumice.load(bytes(pumice.export(module, (rows,))))(rows)
    exact = grouped(rows.bfloat16().double(), weight.bfloat16().double(), ends)
    assert ((got - exact).abs() <= 2.0**-8 * exact.abs() + 1e-5).all()


def test_other_forms_are_refused(e2e) -> None:
    x, ends = normal(4, 16, 16).bfloat16(), torch.tensor([4, 16], dtype=torch.int32)
    e2e.refuses(Function(lambda x: F.grouped_mm(x[0], x[1], offs=ends)), x, match="_grouped_mm")
