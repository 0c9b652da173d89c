# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import torch
from support.many import Many, normal

FUNCTIONS = [
    lambda x: x.view(6, 4), lambda x: x.reshape(-1), lambda x: x.reshape(4, -1, 1), lambda x: x.unsqueeze(0),
    lambda x: x.unsqueeze(-1), lambda x: x.unsqueeze(1).squeeze(), lambda x: x[:, None].squeeze(1),
    lambda x: x.flatten(), lambda x: x.flatten(1), lambda x: x.unflatten(2, (2, 2)),
    lambda x: x.view(2, 3, 2, 2).squeeze((0, 1)), lambda x: x.clone(), lambda x: x.detach(), lambda x: x.contiguous(),
    lambda x: x,
]  # fmt: skip


def test_nothing_runs(e2e) -> None:
    program = e2e.check(Many(FUNCTIONS), normal(2, 3, 4))
    assert set(program.report.operators) <= {"view"}


def test_dtypes(e2e) -> None:
    for dtype in (torch.float16, torch.int64, torch.int8, torch.bool):
        e2e.check(Many([lambda x: x.reshape(3, 5), lambda x: x.reshape(5, 3).t()]), normal(15, dtype=dtype))


def test_rank_0_and_empty(e2e) -> None:
    e2e.check(Many([lambda x: x.reshape(1, 1), lambda x: x.view(-1)]), torch.tensor(2.0))
    e2e.check(Many([lambda x: x.reshape(3, 0), lambda x: x.reshape(0, 7), lambda x: x.flatten()]), normal(0, 3))


def test_changing_sizes(e2e) -> None:
    rows = torch.export.Dim("rows", min=2, max=50)
    functions = [
        lambda x: x.reshape(-1), lambda x: x.reshape(x.shape[0], 2, -1), lambda x: x.view(-1, 3),
        lambda x: x.flatten() + 1,
    ]  # fmt: skip
    e2e.check(
        Many(functions), normal(4, 6), dynamic_shapes={"inputs": ({0: rows},)}, runs=[(normal(7, 6),), (normal(50, 6),)]
    )
