# SPDX-License-Identifier: Apache-2.0
"""Shapes of convolutions for tests: every value of every size with every other, in a few cases."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from support.sums import Sums, sums


def has_splits(row: Any) -> bool:
    """Whether several workgroups shared each output tile of this row of a profile: it writes partial sums, then."""
    by_matrices = row.kernel.startswith(("conv2d_matrix", "conv2d_dot"))
    return by_matrices and row.shape.split(" -> ")[1].split()[1] != "i32[4]"


@dataclass(frozen=True)
class Case:
    batch: int
    channels: int
    out: int
    kernel: Any
    image: tuple[int, int]
    stride: Any = 1
    padding: Any = 0
    dilation: Any = 1
    groups: int = 1
    bias: bool = True

    def module(self) -> nn.Conv2d:
        sizes = self.stride, self.padding, self.dilation, self.groups, self.bias
        return nn.Conv2d(self.channels, self.out, self.kernel, *sizes)

    def x(self, dtype: torch.dtype = torch.float32) -> torch.Tensor:
        return torch.randn(self.batch, self.channels, *self.image).to(dtype)


CASES = [
    Case(1, 3, 17, 3, (7, 9), padding=1),
    Case(3, 5, 64, (1, 7), (5, 13), (1, 2), (0, 3), bias=False),
    Case(1, 64, 17, 1, (8, 8)),
    Case(3, 17, 5, 1, (9, 7), 2, bias=False),
    Case(1, 1, 17, 7, (16, 15), 3, 3),
    Case(3, 64, 64, 3, (9, 8), (2, 1), 1),
    Case(1, 34, 34, (3, 2), (9, 11), 1, "same", (2, 3), 2),
    Case(3, 64, 34, (5, 4), (17, 12), 3, 2, 1, 2, False),
    Case(1, 17, 17, 3, (12, 12), 2, 1, 2, 17),
    Case(3, 5, 10, 2, (6, 8), 1, 0, 3, 5, False),
    Case(1, 3, 1, 6, (11, 16), 2, 1),
    Case(3, 5, 17, 5, (10, 9), 1, "same", (1, 2), 1, False),
    Case(3, 9, 9, 3, (10, 11), (3, 2), 0, 1, 9),
    Case(1, 4, 4, 5, (7, 8), 1, 2, 1, 4),
    Case(2, 6, 6, 3, (7, 11), (1, 2), (1, 1), (2, 1), 6, False),
]


# For kernels that a CPU driver compiles for seconds each: sums in parts, images that do not begin with a vec4 group;
# tails everywhere; a 1 x 1 that needs a copy of x, and one that does not.
MATRIX_CASES = [
    Case(3, 176, 20, 3, (5, 5)),
    Case(2, 33, 40, (2, 3), (9, 8), (2, 1), (1, 2), (1, 2), bias=False),
    Case(3, 17, 12, 1, (5, 7)),
    Case(3, 40, 17, 1, (6, 6)),
]


def sums_of(module: nn.Module, x: torch.Tensor) -> Sums:
    """The sums of a convolution."""
    exact = type(module)(**_arguments(module)).double()

    @torch.no_grad()
    def result(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
        exact.weight.data = weight
        if bias is not None:
            exact.bias.data = bias
        return exact(x)

    terms = module.weight[0, 0].numel() * module.in_channels // module.groups
    bias = None if module.bias is None else module.bias.detach()
    return sums(result, x, module.weight.detach(), bias, terms=terms)


def _arguments(module: nn.Module) -> dict[str, Any]:
    names = "in_channels", "out_channels", "kernel_size", "stride", "padding", "dilation", "groups"
    given = {name: getattr(module, name) for name in names} | {"bias": module.bias is not None}
    return given | ({"output_padding": module.output_padding} if module.transposed else {})


def pads(case: Case) -> list[int]:
    """Padding above, left, below, right."""
    kernel, dilation = (s if isinstance(s, tuple) else (s, s) for s in (case.kernel, case.dilation))
    if case.padding == "same":
        total = [d * (k - 1) for k, d in zip(kernel, dilation, strict=True)]
        return [*(t // 2 for t in total), *(t - t // 2 for t in total)]
    return list(case.padding if isinstance(case.padding, tuple) else (case.padding, case.padding)) * 2


def pair(value: Any) -> list[int]:
    return list(value) if isinstance(value, tuple) else [value, value]


def convolve(case: Case, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
    return F.conv2d(x, weight, bias, case.stride, case.padding, case.dilation, case.groups)
