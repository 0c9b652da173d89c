# SPDX-License-Identifier: Apache-2.0
"""A pattern on integers is left out by itself: the other ones still match, in front of it and after it."""

from __future__ import annotations

import pytest
import torch
from support.integer_patterns import INPUT, RESULT, qd
from support.unfused import Function, check_pattern
from torch.nn import functional as F

FLOATS = {"dequantize": 1, "quantize": 1}
UNFUSED = {
    "integers_table": {"hardswish": 1, "q8ta_avg_pool": 1, "view": 2} | FLOATS,
    "integers_pool": {"lookup": 1, "avg_pool": 1, "view": 2} | FLOATS,
    "integers_view": {"lookup": 1, "q8ta_avg_pool": 1, "view": 1} | FLOATS,
}


def three_layers(x: torch.Tensor) -> torch.Tensor:
    """Each between a dequantize and a quantize node of its own."""
    x = qd.quantize_per_tensor(F.hardswish(qd.dequantize_per_tensor(x, *INPUT)), *RESULT)
    x = qd.quantize_per_tensor(F.avg_pool2d(qd.dequantize_per_tensor(x, *RESULT), 2), *INPUT)
    return qd.quantize_per_tensor(qd.dequantize_per_tensor(x, *INPUT).flatten(1), *INPUT)


@pytest.mark.parametrize("pattern", UNFUSED)
def test_the_other_patterns_stay(pattern) -> None:
    torch.manual_seed(0)
    x = qd.quantize_per_tensor(torch.randn(2, 3, 6, 4), *INPUT)
    fused = {"lookup": 1, "q8ta_avg_pool": 1, "view": 2}
    check_pattern(Function(three_layers), x, pattern=pattern, fused=fused, unfused=UNFUSED[pattern], steps=1)
