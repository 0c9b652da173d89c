# SPDX-License-Identifier: Apache-2.0
"""Functions of single elements."""

from __future__ import annotations

import math

import torch

from pumice.decompositions.table import takes_apart

aten = torch.ops.aten


@takes_apart(aten.angle.default)
def angle(self: torch.Tensor) -> torch.Tensor:
    """Of real numbers: pi below zero. Those of complex ones: passes/complex_pairs.py."""
    if self.is_complex():
        return NotImplemented
    x = self if self.dtype.is_floating_point else self.to(torch.float32)
    return torch.where(x != x, x, torch.where(x < 0, math.pi, 0.0).to(x.dtype))


@takes_apart(aten.signbit.default)
def signbit(self: torch.Tensor) -> torch.Tensor:
    """Of -0 and NaN, too."""
    return torch.copysign(torch.ones_like(self), self) < 0 if self.dtype.is_floating_point else self < 0
