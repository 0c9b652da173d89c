# SPDX-License-Identifier: Apache-2.0
"""Linear layers of torchao's Int8 configurations, which end with a product of the weight's scales, and in fp16 with a
conversion: see int8_layer.py."""

from __future__ import annotations

from collections.abc import Callable

import torch

from pumice.format.ir import DType
from pumice.fusion.int8_layer import Int8Layer
from pumice.fusion.layer import fused, layer_before, layer_of_product
from pumice.lowering.call import Call
from pumice.lowering.registry import fuses
from pumice.ops.cast import CONVERSIONS

aten = torch.ops.aten


@fuses(aten.mul.Tensor)
def product(call: Call) -> Callable[[], None] | None:
    """Matches the product with the scales."""
    return fused(call, layer_of_product(call))


@fuses(*CONVERSIONS)
def conversion(call: Call) -> Callable[[], None] | None:
    """Matches the conversion to fp16 after it."""
    if call.out.dtype is not DType.f16:
        return None
    layer = layer_before(call, call.tensor("self"))
    return fused(call, layer) if layer is not None and isinstance(layer.weight, Int8Layer) else None
