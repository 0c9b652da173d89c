# SPDX-License-Identifier: Apache-2.0
"""How far the answer of a whole network may be off: measured with random roundings in fp64."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import nn
from transformers.pytorch_utils import Conv1D


def row_error(got: torch.Tensor, want: torch.Tensor) -> float:
    """Of the worst row [.., V], relative; `want` is fp64."""
    return float(((got.double() - want).norm(dim=-1) / want.norm(dim=-1)).max())


@torch.no_grad()
def roundings(
    exact: nn.Module, answer: Callable[[nn.Module], torch.Tensor], unit: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """The answer of a network in fp64, and its error when every layer's result is rounded.

    The result of a layer has an error of `unit`, the rounding to its dtype; sums of k products also have one of
    2^-24 sqrt(k), because each addition rounds and the errors are independent. How the later layers change these errors
    depends on the network, so this is measured with random errors of that size.
    """
    want = answer(exact)
    generator = torch.Generator().manual_seed(3)

    def rounded(module: nn.Module, _: tuple, out: torch.Tensor | tuple) -> torch.Tensor | None:
        if not isinstance(out, torch.Tensor):
            return None  # cos and sin of a rotary embedding, which are fp32 in every dtype
        size = unit + 2.0**-24 * math.sqrt(_products(module))
        return out * (1 + size * (2 * torch.rand(out.shape, generator=generator, dtype=out.dtype) - 1))

    leaves = [module for module in exact.modules() if not list(module.children())]
    hooks = [module.register_forward_hook(rounded) for module in leaves]
    off = answer(exact) - want
    for hook in hooks:
        hook.remove()
    return want, off


def _products(module: nn.Module) -> int:
    """Of the sum that makes an element of the result."""
    if isinstance(module, Conv1D):
        return module.nx
    return module.weight[0].numel() if isinstance(module, nn.Conv2d | nn.Linear) else 0
