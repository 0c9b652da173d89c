# SPDX-License-Identifier: Apache-2.0
"""Linear layers that may become a part of a larger product."""

from __future__ import annotations

from dataclasses import dataclass

from pumice.fusion.layer import Layer, layer_before
from pumice.lowering.call import Call
from pumice.lowering.quantized_activation import before_views
from pumice.lowering.ref import Ref
from pumice.lowering.sizes import same


@dataclass(frozen=True)
class Product:
    """x @ weight.T + bias of the node of `call`: x [..., K]; weight [N, K], also dequantized; bias [N], or None."""

    call: Call
    x: Ref
    weight: Ref
    bias: Ref | None


def product_of(layer: Layer | None) -> Product | None:
    """None of a layer of integers, which has its own scales."""
    if layer is None or not isinstance(layer.weight, Ref):
        return None
    return Product(layer.call, layer.x, layer.weight, layer.bias)


def product_of_heads(call: Call, heads: Ref, single_use: bool = False) -> Product | None:
    """The layer whose result [B, L, H * E] was viewed as `heads`, [B, L, H, E]; `single_use`: of views that nothing
    else reads."""
    rows = before_views(call, heads, rows=False, single_use=single_use)
    whole = rows.rank >= 2 and same(rows.shape[-1], heads.shape[-1] * heads.shape[-2])
    return product_of(layer_before(call, rows)) if whole else None
