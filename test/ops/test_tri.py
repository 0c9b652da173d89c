# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
import torch
from support.many import ALL, Many, normal

FUNCTIONS = [lambda x, k=k: x.tril(k) for k in (0, 1, -2, 9)] + [lambda x, k=k: x.triu(k) for k in (0, 1, -2, 9)]


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_tri(e2e, dtype) -> None:
    e2e.check(Many(FUNCTIONS), normal(2, 5, 7, dtype=dtype))
    e2e.check(Many(FUNCTIONS[:1]), normal(4, 4, dtype=dtype))


def test_nan_outside_becomes_zero(e2e) -> None:
    e2e.check(Many(FUNCTIONS), torch.full((3, 3), float("nan")), reference="eager")
