# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
import torch
from support.integer_patterns import check_integers, qd


class Conv(torch.nn.Module):
    """A convolution with int8 weights by output channel."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("weight", torch.randint(-127, 128, (6, 4, 3, 3), dtype=torch.int8))
        self.register_buffer("scale", torch.rand(6) * 0.01 + 0.001)
        self.register_buffer("zero", torch.zeros(6, dtype=torch.int64))
        self.register_buffer("bias", torch.randn(6))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        weight = qd.dequantize_per_channel(self.weight, self.scale, self.zero, 0, -127, 127, torch.int8)
        return torch.nn.functional.conv2d(x, weight, self.bias, padding=1)


@pytest.mark.parametrize("relu", [False, True])
def test_conv(relu) -> None:
    """A result near a tie may differ by one from PyTorch's sums of floats."""
    torch.manual_seed(0)
    function = (lambda conv, x: torch.relu(conv(x))) if relu else (lambda conv, x: conv(x))
    # Without the pattern the convolution takes integers and makes floats.
    check_integers(
        function,
        torch.randn(2, 4, 6, 5),
        pattern="integers_conv",
        fused={"q8ta_conv2d": 1},
        floats={"conv2d_q8ta_q8csw": 1},
        layers=(Conv(),),
        taken=True,
        steps=1,
    )
