# SPDX-License-Identifier: Apache-2.0
"""Random numbers of other distributions, by those that passes/random_numbers.py draws."""

from __future__ import annotations

from typing import Any

import torch

from pumice.decompositions.table import takes_apart

aten = torch.ops.aten


@takes_apart(aten.multinomial.default)
def multinomial(
    self: torch.Tensor, num_samples: int, replacement: bool = False, *, generator: Any = None
) -> torch.Tensor:
    """The largest of log(weight) + Gumbel noise is drawn in proportion to the weights; the k largest, one after another
    without replacement. Weights are not checked as eager does: a negative one is never drawn."""
    weights = self.to(torch.float32)
    if replacement:
        weights = weights.unsqueeze(-2).expand(*self.shape[:-1], num_samples, self.shape[-1])
    noise = -torch.log(-torch.log(torch.rand_like(weights)))
    scores = torch.where(weights > 0, weights.log(), -torch.inf) + torch.where(noise.isfinite(), noise, -100.0)
    return scores.argmax(-1) if replacement else scores.topk(num_samples, -1).indices


@takes_apart(aten.normal.Tensor_Tensor, aten.normal.Tensor_float)
def normal(mean: torch.Tensor, std: Any = 1, *, generator: Any = None) -> torch.Tensor:
    """A mean, and perhaps a deviation, for each element."""
    size = torch.broadcast_shapes(mean.shape, std.shape) if isinstance(std, torch.Tensor) else mean.shape
    return mean + std * torch.randn(size, dtype=mean.dtype)


@takes_apart(aten.normal.float_Tensor)
def normal_around_a_number(mean: float, std: torch.Tensor, *, generator: Any = None) -> torch.Tensor:
    """A deviation for each element."""
    return mean + std * torch.randn_like(std)


@takes_apart(aten.bernoulli.p)
def bernoulli(self: torch.Tensor, p: float = 0.5, *, generator: Any = None) -> torch.Tensor:
    """Of dropouts of whole channels: table.py leaves it whole where the model is to have none."""
    return (torch.rand_like(self, dtype=torch.float32) < p).to(self.dtype)
