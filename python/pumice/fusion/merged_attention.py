# SPDX-License-Identifier: Apache-2.0
"""scaled_dot_product_attention(linear(x), linear(x), linear(x)) -> one product, whose result the attention reads in
place: heads of queries, of keys and of values side by side."""

from __future__ import annotations

from dataclasses import dataclass

from pumice.fusion.attention_slices import Slices, finds_slices
from pumice.fusion.layer import layer_of_heads
from pumice.fusion.merged_layers import emit_merged, merged
from pumice.fusion.product import Product
from pumice.lowering.call import Call
from pumice.lowering.operands import Size
from pumice.lowering.permuted import PERMUTES, permutation
from pumice.lowering.sizes import same_shape
from pumice.ops import sdpa


@dataclass(frozen=True)
class _Heads:
    """Queries, keys or values: heads [B, L, H, E] of the result of a layer, both of which nothing else reads."""

    shape: tuple[Size, ...]
    product: Product


@finds_slices
def merged_attention(call: Call) -> Slices | None:
    """Matches an attention whose queries, keys and values are heads of three layers that fit together."""
    parts = _parts(call)
    return None if parts is None else lambda: _emit(call, parts)


def _parts(call: Call) -> list[_Heads] | None:
    q, k, v = parts = [_heads(call, name) for name in ("query", "key", "value")]
    if q is None or k is None or v is None or not same_shape(k.shape, v.shape):
        return None
    batch, rows, heads, size = q.shape
    if not same_shape(k.shape, [batch, rows, k.shape[2], size]) or len({part.product.call.node for part in parts}) < 3:
        return None
    fits = sdpa.can_be_sliced([batch, rows, heads + 2 * k.shape[2], size])
    return parts if fits and merged(call, [part.product for part in parts]) is not None else None


def _heads(call: Call, name: str) -> _Heads | None:
    heads = call.tensor(name)
    swap = call.producer(heads, *PERMUTES, single_use=True)
    if swap is None or heads.rank != 4 or permutation(swap) != sdpa.SWAPPED:
        return None
    inner = swap.tensor("self")
    if not all(isinstance(size, int) for size in inner.shape[2:]):
        return None
    layer = layer_of_heads(swap, inner, single_use=True)
    product = layer and layer.product
    return _Heads(inner.shape, product) if product is not None and product.x.dtype is heads.dtype else None


def _emit(call: Call, parts: list[_Heads]) -> list[sdpa.Slice]:
    (batch, rows, heads, size), kv_heads = parts[0].shape, parts[1].shape[2]
    product = emit_merged(call, [part.product for part in parts])
    whole = call.view(product, [batch, rows, heads + 2 * kv_heads, size])
    return [sdpa.Slice(whole, first) for first in (0, heads, heads + kv_heads)]
