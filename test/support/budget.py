# SPDX-License-Identifier: Apache-2.0
"""The error against PyTorch that is allowed for each operator, and why. Integers and bools are always exact.

A budget allows  |err| <= atol + rtol * |y| + of_max * max|y|  beyond one rounding to the storage type (2^-24 |y| for
f32, 2^-11 |y| for f16), where y is the reference: eager PyTorch in fp64 where the module allows it, else eager itself.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

ULP = 2.0**-23  # the distance of neighbouring fp32 numbers, relative


@dataclass(frozen=True)
class Budget:
    """`of_max` is for sums: their error grows with the size of the terms, not with that of the result."""

    atol: float = 0.0
    rtol: float = 0.0
    of_max: float = 0.0
    why: str = ""

    def allowed(self, reference: torch.Tensor, stored: torch.dtype) -> torch.Tensor:
        size = reference.abs()
        finite = size[size.isfinite()]
        largest = float(finite.max()) if finite.numel() else 0.0
        half_ulp, tiny = (2.0**-11, 2.0**-25) if stored == torch.float16 else (2.0**-24, 2.0**-126)
        return (self.atol + tiny + self.of_max * largest) + (self.rtol + half_ulp) * size


EXACT = Budget(why="data moves, or one correctly rounded operation")
ARITHMETIC = Budget(rtol=3 * ULP, why="Vulkan allows 2.5 ulp for a division; add, sub and mul are correctly rounded")
ROOT = Budget(rtol=4 * ULP, why="Vulkan: inversesqrt 2 ulp, sqrt one division by it")
EXP = Budget(
    rtol=200 * ULP, atol=1e-37, why="Vulkan: exp is 3 + 2|x| ulp, |x| <= 88 in fp32; subnormal results may be flushed"
)
LOG = Budget(rtol=4 * ULP, atol=2.0**-20, why="Vulkan: log is 3 ulp, and absolute 2^-21 on [0.5, 2]")
TRIGONOMETRY = Budget(
    atol=2.0**-11, why="Vulkan: sin and cos are absolute 2^-11 on [-pi, pi] where the driver's are used"
)
POW = Budget(rtol=400 * ULP, why="exp2(y * log2(x)): the error of log2 times y")
ACTIVATION = Budget(rtol=32 * ULP, atol=4e-7, why="exp inside of gelu, tanh, sigmoid, silu; cancellation near zero")
REDUCTION = Budget(
    rtol=8 * ULP, of_max=64 * ULP, why="fp32 sums in another order: about log2(n) roundings of partial sums"
)
SOFTMAX = Budget(rtol=256 * ULP, atol=1e-7, why="exp relative to the largest element, then a sum and a division")
NORM = Budget(
    rtol=32 * ULP,
    of_max=32 * ULP,
    atol=1e-6,
    why="mean and variance are fp32 sums; rsqrt 2 ulp; cancellation of x - mean",
)
MATMUL = Budget(rtol=8 * ULP, of_max=64 * ULP, why="fp32 sums of products in another order; terms cancel")
QUANTIZED = Budget(
    rtol=16 * ULP, of_max=128 * ULP, why="as MATMUL; eager rounds every dequantized weight to fp32, the kernel need not"
)
ATTENTION = Budget(rtol=256 * ULP, of_max=64 * ULP, why="MATMUL, SOFTMAX, MATMUL")
MODEL = Budget(atol=2e-5, rtol=1e-4, of_max=1e-5, why="a whole network: errors of the layers add up")
