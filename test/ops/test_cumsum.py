# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
import torch
from support.budget import REDUCTION
from support.many import ALL, Many, normal

FUNCTIONS = [lambda x: x.cumsum(0), lambda x: x.cumsum(-1), lambda x: x.cumsum(1), lambda x: x[:, 0].cumsum(1)]


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_cumsum(e2e, dtype) -> None:
    e2e.check(Many(FUNCTIONS), normal(3, 5, 7, dtype=dtype), budget=REDUCTION, all_features=dtype is torch.float32)
    e2e.check(Many([lambda x: x.cumsum(-1), lambda x: x.cumsum(0)]), normal(2, 300, dtype=dtype), budget=REDUCTION)


def test_more(e2e) -> None:
    e2e.check(
        Many([lambda x: x.cumsum(0, dtype=torch.float32), lambda x: (x > 3).cumsum(-1) * 2]),
        normal(4, 9, dtype=torch.int64),
    )
    e2e.check(Many([lambda x: x.cumsum(0)]), torch.tensor(3.0))
    e2e.check(Many([lambda x: x.cumsum(0), lambda x: x.cumsum(1)]), normal(0, 3))
    width = torch.export.Dim("width", min=2, max=400)
    runs = [(normal(3, n),) for n in (2, 65, 400)]
    e2e.check(
        Many([lambda x: x.cumsum(1)]),
        normal(3, 9),
        dynamic_shapes={"inputs": ({1: width},)},
        runs=runs,
        budget=REDUCTION,
    )
