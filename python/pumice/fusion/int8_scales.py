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

aten = torch.ops.aten


@fuses(aten.mul.Tensor)
def product(call: Call) -> Callable[[], None] | None:
    return fused(call, layer_of_product(call))


@fuses(
    aten._to_copy.default,
    aten.to.dtype,
    aten.to.dtype_layout,
    aten.to.device,
    aten.to.other,
    aten.type_as.default,
)
def conversion(call: Call) -> Callable[[], None] | None:
    if call.out.dtype is not DType.f16:
        return None
    layer = layer_before(call, call.tensor("self"))
    return fused(call, layer) if layer is not None and isinstance(layer.weight, Int8Layer) else None
