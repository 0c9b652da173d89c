# SPDX-License-Identifier: Apache-2.0
"""linear(x) + residual -> the layer's own operator, which adds the residual to its result.

A constant factor of each column, linear(x) * scale + residual, goes into a float weight. That is rounded once more to
its dtype, in fp16 by 2^-11 of an element, or by 2^-25 where that is more."""

from __future__ import annotations

from collections.abc import Callable

import torch

from pumice.fusion.layer import fused, layer_before, scaled_layer_before
from pumice.lowering.call import Call
from pumice.lowering.ref import Ref
from pumice.lowering.registry import fuses
from pumice.lowering.sizes import same_shape
from pumice.ops.binary import pair

aten = torch.ops.aten


@fuses(aten.add.Tensor)
def residual(call: Call) -> Callable[[], None] | None:
    """Matches a layer that this sum alone reads, plus a tensor of the same shape and dtype."""
    a, b = pair(call)
    if not (isinstance(a, Ref) and isinstance(b, Ref)) or call["alpha"] != 1 or a.is_same(b):
        return None
    if not same_shape(a.shape, b.shape) or not a.dtype is b.dtype is call.out.dtype:
        return None
    sides = (
        (layer_before(call, product) or scaled_layer_before(call, product), other)
        for product, other in ((a, b), (b, a))
    )
    found = (fused(call, layer, residual=other) for layer, other in sides)
    return next((emit for emit in found if emit is not None), None)
