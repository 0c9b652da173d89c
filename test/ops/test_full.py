# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import torch
from support.many import Many, normal

DTYPES = [torch.float32, torch.float16, torch.int64, torch.int8, torch.bool]
FUNCTIONS = [
    *[lambda x, d=d: torch.full((x.shape[0], 3), 1, dtype=d) for d in DTYPES], lambda x: torch.zeros(x.shape[0]),
    lambda x: torch.ones_like(x), lambda x: torch.full_like(x, -2.5), lambda x: x.new_zeros(2, x.shape[0]),
    lambda x: torch.zeros_like(x, dtype=torch.int64) + 3, lambda x: torch.arange(x.shape[0]),
    lambda x: torch.arange(2, x.shape[0] * 3, 2), lambda x: torch.arange(x.shape[0], dtype=torch.float32) * 0.5,
    lambda x: torch.arange(x.shape[0], 0, -1), lambda x: torch.full((2, x.shape[0]), x.shape[0]),
    lambda x: torch.tensor([1.5, 2]) * x.shape[0],
]  # fmt: skip


def test_sizes_of_inputs(e2e) -> None:
    rows = torch.export.Dim("rows", min=2, max=64)
    runs = [(normal(2, 3),), (normal(64, 3),)]
    e2e.check(Many(FUNCTIONS), normal(5, 3), dynamic_shapes={"inputs": ({0: rows},)}, runs=runs, reference="eager")


def test_constants_are_folded(e2e) -> None:
    functions = [
        lambda x: x + torch.arange(3), lambda x: x * torch.full((5, 1), 2.0), lambda x: x + torch.ones(5, 3).tril(),
    ]  # fmt: skip
    e2e.check(Many(functions), normal(5, 3), expect_ops={"arange": 0, "full": 0, "tril": 0})
