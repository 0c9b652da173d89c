# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
import torch
from support.many import ALL, Many, normal

INF, NAN = float("inf"), float("nan")


@pytest.mark.parametrize("dtype", ALL[:-1], ids=str)
def test_clamp(e2e, dtype) -> None:
    functions = [
        lambda x: x.clamp(1, 5), lambda x: x.clamp(min=2), lambda x: x.clamp(max=3), lambda x: x.clamp(5, 1),
        lambda x: x.clamp_min(1), lambda x: x.clamp_max(0), lambda x: x.clamp(0.25, 2.5),
        lambda x: x.clamp(x[0], x[1]), lambda x: x.clamp(max=x[:, :1]), lambda x: x.clamp(min=x[:1]),
    ]  # fmt: skip
    e2e.check(Many(functions), normal(5, 7, dtype=dtype), reference="eager", all_features=dtype is torch.float32)


def test_special_values(e2e) -> None:
    x = torch.tensor([NAN, INF, -INF, 0.0, -0.0, 1.0, 3.4e38])
    functions = [
        lambda x: x.clamp(-1, 1), lambda x: x.clamp(min=-INF), lambda x: x.clamp(NAN, 1),
        lambda x: torch.nn.functional.hardtanh(x, -2, 2), lambda x: torch.nn.functional.relu6(x),
        lambda x: x.clamp(max=torch.tensor(NAN)), lambda x: x.clamp(max=INF),
    ]  # fmt: skip
    e2e.check(Many(functions), x, reference="eager")
    e2e.check(Many([lambda x: x.clamp(-(2**40), 2**40), lambda x: x.clamp(min=-5)]), normal(9, dtype=torch.int64))
    e2e.check(Many([lambda x: x.clamp(0, 1)]), normal(3, dtype=torch.bool))


def test_sizes_as_bounds(e2e) -> None:
    functions = [lambda x: x.clamp(max=x.shape[0]), lambda x: x.clamp(2, x.shape[0]), lambda x: x.clamp(min=x.shape[0])]
    rows = torch.export.Dim("rows", min=2, max=16)
    for x in (torch.arange(32).reshape(8, 4), torch.arange(32).reshape(8, 4) / 3):
        e2e.check(Many(functions), x, dynamic_shapes={"inputs": ({0: rows},)}, runs=[(x[:3],), (x[5:],)])
    e2e.refuses(Many(functions[:1]), normal(5, dtype=torch.int8), match="fit", dynamic_shapes={"inputs": ({0: rows},)})
