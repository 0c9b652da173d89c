# SPDX-License-Identifier: Apache-2.0
"""An image at the places of a grid: torch.nn.functional.grid_sample. See ops/grid_sampler_2d.cpp."""

from __future__ import annotations

import torch

from pumice.lowering.call import Call
from pumice.lowering.registry import lowers

aten = torch.ops.aten


@lowers(aten.grid_sampler_2d.default)
def grid_sampler_2d(call: Call) -> None:
    """Of floats."""
    how = call["interpolation_mode"], call["padding_mode"], call["align_corners"]
    call.emit("grid_sampler_2d", call.tensor("input"), call.tensor("grid"), *how)
