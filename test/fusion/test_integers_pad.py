# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import torch
from support.integer_patterns import check_integers
from torch.nn import functional as F


def test_pad() -> None:
    torch.manual_seed(0)
    fused = {"lookup": 1, "pad": 1}
    check_integers(
        lambda x: F.pad(x, (1, 0, 2, 1), value=0.25),
        torch.randn(3, 5),
        pattern="integers_pad",
        fused=fused,
        floats={"pad": 1},
    )
