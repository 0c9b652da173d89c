# SPDX-License-Identifier: Apache-2.0
"""Convolutions by their number of dimensions, and by whether the weight is there at export."""

from __future__ import annotations

import torch

from pumice.lowering.call import Call
from pumice.lowering.quantized import quantized
from pumice.lowering.registry import lowers
from pumice.ops.conv2d import CONVOLUTIONS, convolution
from pumice.ops.conv3d import conv3d
from pumice.ops.conv_of_computed import conv_of_computed

_ANY = torch.ops.aten.convolution.default  # torch takes all of them apart to it


@lowers(*(target for target in CONVOLUTIONS if target is not _ANY))
def conv(call: Call) -> None:
    """conv1d, conv2d and their transposed forms."""
    weight = call.tensor("weight")
    if weight.is_constant or quantized(call, weight) is not None:
        convolution(call).emit(call.out)
    else:
        conv_of_computed(call)


@lowers(_ANY)
def any_convolution(call: Call) -> None:
    """Of one, two or three dimensions."""
    (conv3d if call.tensor("weight").rank == 5 else conv)(call)
