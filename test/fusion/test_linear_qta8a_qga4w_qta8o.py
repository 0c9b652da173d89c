# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import torch
from support.quantized import Apply
from support.unfused import check_pattern
from torch.nn import functional as F

ao = torch.ops.torchao


def test_rows_of_integers_in_and_out() -> None:
    """A result on a tie may round the other way."""
    torch.manual_seed(0)
    weight = torch.randint(-8, 8, (20, 64), dtype=torch.int8)
    scale, point = torch.rand(20, 4) * 0.1, torch.randint(-8, 8, (20, 4), dtype=torch.int8)

    def function(q, s, z, s_out, z_out, weight, scale, point):
        w = ao.dequantize_affine(weight, [1, 16], scale, point, torch.int8, -8, 7)
        y = F.linear(ao.dequantize_affine(q, [1, 64], s, z, torch.int8, -128, 127), w)
        return ao.quantize_affine(y, [1, 20], s_out, z_out, torch.int8, -128, 127)

    args = (
        torch.randint(-128, 128, (9, 64), dtype=torch.int8), torch.rand(9) * 0.1,
        torch.randint(-9, 9, (9,), dtype=torch.int8), torch.rand(9) + 0.5, torch.randint(-9, 9, (9,), dtype=torch.int8),
    )  # fmt: skip
    name = "linear_qta8a_qga4w_qta8o"
    unfused = {"dequantize": 1, "linear_q4gsw": 1, "quantize": 1}
    check_pattern(Apply(function, weight, scale, point), *args, pattern=name, fused={name: 1}, unfused=unfused, steps=1)
