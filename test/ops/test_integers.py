# SPDX-License-Identifier: Apache-2.0
"""Functions between a dequantize and a quantize node, computed from the integers: bit for bit what eager PyTorch gives,
and no float tensor on the device."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from support.many import normal
from support.quantized import check_bits
from torch import nn
from torch.nn import functional as F

qd = torch.ops.quantized_decomposed
RANGES = {torch.int8: (-128, 127), torch.uint8: (0, 255)}


class Between(nn.Module):
    """Integers of each function(a, b), where a and b are dequantized; `numbers`: the scale and zero point of a, of b
    and of the results."""

    def __init__(self, functions: list[Callable], numbers: list[tuple[float, int]], dtype: torch.dtype) -> None:
        super().__init__()
        self.functions, self.dtype = functions, dtype
        self.numbers = [(*pair, *RANGES[dtype], dtype) for pair in numbers]

    def real(self, x: torch.Tensor, numbers: tuple) -> torch.Tensor:
        return qd.dequantize_per_tensor(qd.quantize_per_tensor(x, *numbers), *numbers)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> list[torch.Tensor]:
        a, b = self.real(x, self.numbers[0]), self.real(y, self.numbers[1])
        return [qd.quantize_per_tensor(function(a, b), *self.numbers[2]) for function in self.functions]


TABLES = [
    lambda a, _: a.relu(), lambda a, _: F.hardswish(a), lambda a, _: a.sigmoid(), lambda a, _: (a * 0.5).tanh(),
    lambda a, _: F.gelu(F.leaky_relu(a, 0.3)), lambda a, _: a,
]  # fmt: skip
SUMS = [lambda a, b: a + b, lambda a, b: a * b, lambda a, b: F.relu(b + a)]
MOVES = [
    lambda a, b: torch.cat([a, b, a.relu()], 1), lambda a, _: F.pad(a, (1, 0, 2, 1), value=0.25),
    lambda a, _: a.permute(0, 2, 3, 1).flatten(1), lambda a, _: F.max_pool2d(F.hardtanh(a, 0, 6), 3, 2, 1),
    lambda a, _: F.interpolate(a, scale_factor=2), lambda a, _: F.pixel_shuffle(a, 2),
]  # fmt: skip
MEANS = [
    lambda a, _: F.avg_pool2d(a, 3, 2, 1), lambda a, _: F.adaptive_avg_pool2d(a, (2, 3)), lambda a, _: a.mean((2, 3)),
    lambda a, _: a.mean((-1, -2), keepdim=True),
]  # fmt: skip
BETWEEN = [
    lambda a, _: F.interpolate(a, scale_factor=2, mode="bilinear"),
    lambda a, _: F.interpolate(a, scale_factor=1.1, mode="bilinear"),  # the same size: a copy
    lambda a, _: F.interpolate(a, scale_factor=(1.7, 0.6), mode="bilinear", recompute_scale_factor=False),
    lambda a, _: F.interpolate(a, (13, 1), mode="bilinear", align_corners=True),
    lambda a, _: F.interpolate(a, (97, 60), mode="bilinear"),  # PyTorch has another kernel for more than 128
    lambda a, _: F.interpolate(a, (3, 130), mode="bilinear", align_corners=True),
]  # fmt: skip
EVEN, UNEVEN = [(2.0**-5, 3), (2.0**-4, 0), (2.0**-5, 3)], [(0.0213, 5), (0.0377, 0), (0.0291, 11)]


@pytest.mark.parametrize("dtype", RANGES, ids=str)
def test_functions(dtype) -> None:
    x, y = normal(2, 4, 6, 5), normal(2, 4, 6, 5, seed=2) * 3
    functions = [*TABLES, *SUMS, *MOVES]
    module = Between(functions, UNEVEN, dtype)
    check_bits(module, x, y, expect_ops={"quantize": 2, "dequantize": 0, "relu": 0, "q8ta_add": 2, "q8ta_mul": 1})


def test_means() -> None:
    """With scales that leave PyTorch's sums of floats exact."""
    module = Between([*MEANS, *MOVES[:2]], EVEN, torch.int8)
    operators = {"quantize": 2, "dequantize": 0, "q8ta_avg_pool": 1, "q8ta_adaptive_avg_pool": 3, "lookup": 2}
    check_bits(module, normal(2, 4, 6, 5), normal(2, 4, 6, 5, seed=2), expect_ops=operators)


@pytest.mark.parametrize(
    ("dtype", "layout"), [(torch.int8, torch.contiguous_format), (torch.uint8, torch.channels_last)], ids=str
)
@pytest.mark.skipif(torch.backends.cpu.get_cpu_capability() == "DEFAULT", reason="PyTorch adds products unfused")
def test_between(dtype, layout) -> None:
    """To the scale it comes from, so that a quarter of the quotients are ties, which the last rounding decides."""
    module = Between(BETWEEN, [UNEVEN[0]] * 3, dtype)
    x = normal(2, 12, 7, 9).contiguous(memory_format=layout)
    check_bits(module, x, x, expect_ops={"quantize": 1, "dequantize": 0, "upsample2d": 0, "q8ta_upsample2d": 6})


def test_what_is_read_twice_stays_whole() -> None:
    """A sum that somebody wants as floats, too, is computed as floats once."""

    class Both(Between):
        def forward(self, x: torch.Tensor, y: torch.Tensor) -> list[torch.Tensor]:
            a, b = self.real(x, self.numbers[0]), self.real(y, self.numbers[1])
            both = a + b
            return [qd.quantize_per_tensor(both, *self.numbers[2]), both]

    operators = {"add": 1, "q8ta_add": 0, "dequantize": 2}
    check_bits(Both([], UNEVEN, torch.int8), normal(3, 7), normal(3, 7, seed=2), expect_ops=operators)
