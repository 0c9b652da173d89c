# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
import torch
from support.schemes import inputs, layers, pt2e
from support.unfused import check_pattern


@pytest.mark.parametrize("by_channel", [False, True])
def test_q8ta_linear(by_channel) -> None:
    """Two layers with an activation between: the sums are whole numbers in both forms, so the integers are equal."""
    torch.manual_seed(0)
    module = pt2e(is_per_channel=by_channel)(layers(), inputs())
    fused = {"quantize": 1, "q8ta_linear": 2, "dequantize": 1}
    unfused = {"linear_q8ta_q8csw": 2, "quantize": 1, "dequantize": 1}  # the layers quantize what they read
    check_pattern(module, *inputs(), pattern="q8ta_linear", fused=fused, unfused=unfused)
