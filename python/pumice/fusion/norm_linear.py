# SPDX-License-Identifier: Apache-2.0
"""linear(rms_norm(x)) -> one operator, which for one row takes one dispatch."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch

from pumice.fusion.merged_layers import Product, emit_fused, merged, norm_in_front
from pumice.lowering.call import Call
from pumice.lowering.quantized_activation import before_views
from pumice.lowering.registry import fuses

aten = torch.ops.aten


@fuses(aten.linear.default)
def norm_linear(call: Call) -> Callable[[], None] | None:
    """Matches a layer with a constant weight that alone reads the norm."""
    x, weight = call.tensor("input"), call.tensor("weight")
    source = before_views(call, x, single_use=True)
    if call.producer(source, aten.mul.Tensor, single_use=True) is None or weight.rank != 2:
        return None
    layer = merged(call, [Product(call, x, weight, call["bias"])])
    norm = norm_in_front(call, layer) if layer is not None else None
    return None if norm is None else partial(emit_fused, call, layer, norm, "none", False, call.out)
