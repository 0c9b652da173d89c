# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
import torch
from support.many import ALL, Many, normal
from torch.nn.functional import pad

FUNCTIONS = [
    lambda x: pad(x, (1, 2)), lambda x: pad(x, (0, 0, 1, 1)), lambda x: pad(x, (2, 0, 0, 3, 1, 0)),
    lambda x: pad(x, (-1, 0)), lambda x: pad(x, (-1, 2, 1, -2)), lambda x: pad(x, (1, 1), value=1),
    lambda x: pad(x, (0, 0, 0, 0, 2, 2)),
]  # fmt: skip


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_pad(e2e, dtype) -> None:
    e2e.check(Many(FUNCTIONS), normal(2, 3, 5, dtype=dtype), reference="eager", all_features=dtype is torch.float16)


def test_more(e2e) -> None:
    e2e.check(Many([lambda x: pad(x, (1, 2), value=float("-inf")), lambda x: pad(x, (0, 0))]), normal(3, 4))
    e2e.check(Many([lambda x: pad(x, (1, 2, 1, 0), value=2.5)]), normal(3, 0))
    e2e.refuses(Many([lambda x: pad(x, (1, 1), mode="reflect")]), normal(3, 4), match="reflect|operator")
    rows = torch.export.Dim("rows", min=2, max=64)
    functions = [lambda x: pad(x, (0, 1, 2, 0)), lambda x: pad(x, (0, 0, 0, 65 - x.shape[0]))]
    e2e.check(
        Many(functions), normal(5, 3), dynamic_shapes={"inputs": ({0: rows},)}, runs=[(normal(2, 3),), (normal(64, 3),)]
    )
