# SPDX-License-Identifier: Apache-2.0
"""atan, element by element. The operator is that of ops/atan.cpp."""

from __future__ import annotations

import torch

from pumice.lowering.call import Call
from pumice.lowering.registry import lowers
from pumice.ops.unary import lower_function


@lowers(torch.ops.aten.atan.default)
def atan(call: Call) -> None:
    """f32 or f16; integers become f32."""
    lower_function(call, "atan")
