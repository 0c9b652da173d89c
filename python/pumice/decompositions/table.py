# SPDX-License-Identifier: Apache-2.0
"""The table of what is taken apart: torch's own functions for some overloads, ours for others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch._decomp import decomposition_table

aten = torch.ops.aten

# What torch's default table leaves whole.
_BY_TORCH = (
    aten._batch_norm_with_update_functional.default,
    aten._native_batch_norm_legit_functional.default,
    aten.addmv.default,
    aten.dist.default,
    aten.grid_sampler_2d.default,
    aten.ldexp.Tensor,
    aten.narrow_copy.default,
    aten.native_dropout.default,
)
_ours: dict[Any, Callable] = {}


def takes_apart(*targets: Any) -> Callable[[Callable], Callable]:
    """Registers a function for overloads; its arguments are those of their schema."""

    def register(function: Callable) -> Callable:
        _ours.update(dict.fromkeys(targets, function))
        return function

    return register


def taken_apart() -> dict[Any, Callable]:
    """Overloads and what they are made of. Importing `pumice.decompositions` fills the table."""
    return {target: decomposition_table[target] for target in _BY_TORCH} | _ours
