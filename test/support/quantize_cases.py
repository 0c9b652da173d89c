# SPDX-License-Identifier: Apache-2.0
"""Numbers, scales and blocks that quantize, dequantize and choose_qparams are tested with."""

from __future__ import annotations

import torch

DTYPES = [torch.int8, torch.uint8, torch.int32]
FLOATS = [torch.float32, torch.float16]


INF, NAN = float("inf"), float("nan")
SCALES = [0.1, 1.0, 0.0235, 3.0, 2.0**-20, 7e-5, 5.96e-8, 1000.0, 60000.0]
EXTREME = [0.0, 1e-40, 2.0**-126, 2.0**-125, 2.0**127, 3e38, INF, NAN]


# shape, block: tensor, token, channel of any axis, groups, blocks in several dimensions; tails of 1 to 3 elements
BLOCKS = [
    ((7,), [7]), ((5, 33), [1, 33]), ((5, 33), [5, 1]), ((4, 6, 5), [4, 1, 5]), ((3, 64), [1, 32]), ((6, 10), [2, 5]),
    ((3, 4, 9, 2), [1, 1, 9, 2]), ((2, 3, 4, 5, 6), [2, 3, 4, 5, 6]), ((2, 3, 4, 5, 6), [1, 3, 2, 5, 3]),
    ((2, 1, 2, 3, 2, 1, 2, 3), [1, 1, 2, 1, 2, 1, 1, 3]), ((2, 4, 2, 6, 2, 4, 2, 2), [1, 2, 1, 3, 1, 2, 1, 1]),
    ((3, 5000), [1, 5000]), ((2, 4096), [2, 4096]), ((1, 1), [1, 1]), ((), []),
]  # fmt: skip


def parameters(shape: tuple[int, ...], block: list[int], dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    count = [size // part for size, part in zip(shape, block, strict=True)]
    generator = torch.Generator().manual_seed(len(shape))
    low, high = (0, 255) if dtype is torch.uint8 else (-128, 127)
    scale = torch.rand(count, generator=generator) * 0.1 + 1e-3
    return scale, torch.randint(low, high + 1, count, generator=generator, dtype=torch.int32)
