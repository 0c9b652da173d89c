# SPDX-License-Identifier: Apache-2.0
"""The one operator that torch takes all convolutions apart to: by its number of dimensions."""

from __future__ import annotations

import torch

from pumice.lowering.call import Call
from pumice.lowering.registry import lowers
from pumice.ops.conv2d import conv
from pumice.ops.conv3d import conv3d


@lowers(torch.ops.aten.convolution.default)
def any_convolution(call: Call) -> None:
    """Of one, two or three dimensions."""
    (conv3d if call.tensor("weight").rank == 5 else conv)(call)
