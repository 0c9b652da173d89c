# SPDX-License-Identifier: Apache-2.0
"""scaled_dot_product_attention(linear(x), linear(x), linear(x)) -> one product, whose result the attention reads in
place: heads of queries, of keys and of values side by side."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pumice.fusion.merged_layers import emit_merged, merged
from pumice.fusion.product import Product, product_of_heads
from pumice.lowering.call import Call
from pumice.lowering.operands import Size
from pumice.lowering.permuted import PERMUTES, permutation
from pumice.lowering.ref import Ref
from pumice.lowering.registry import fuses
from pumice.lowering.sizes import largest, same_shape
from pumice.ops import sdpa

# Of the merged result: 128 MiB in fp32, which one binding takes on every device. More would run in parts, and a size
# without a bound is not known to stay below.
_MOST_ELEMENTS = 1 << 25


@dataclass(frozen=True)
class _Heads:
    """Queries, keys or values: heads [B, L, H, E] of the result of a layer, both of which nothing else reads."""

    shape: tuple[Size, ...]
    product: Product


@fuses(sdpa.SDPA)
def merged_attention(call: Call) -> Callable[[], None] | None:
    """Matches an attention whose queries, keys and values are heads of three layers that fit together."""
    parts = _parts(call)
    return None if parts is None else lambda: _emit(call, parts, call.out, False)


def emit_attention(call: Call, out: Ref, out_swapped: bool) -> None:
    """The attention of `call` as of `ops.sdpa.emit`, of one product where this pattern matches."""
    parts = None if call.is_left_out("merged_attention") else _parts(call)
    if parts is None:
        sdpa.emit(call, out, out_swapped)
    else:
        _emit(call, parts, out, out_swapped)


def _parts(call: Call) -> list[_Heads] | None:
    q, k, v = parts = [_heads(call, name) for name in ("query", "key", "value")]
    if q is None or k is None or v is None or not same_shape(k.shape, v.shape):
        return None
    batch, rows, heads, size = q.shape
    if not same_shape(k.shape, [batch, rows, k.shape[2], size]) or len({part.product.call.node for part in parts}) < 3:
        return None
    most = largest(batch * rows * (heads + 2 * k.shape[2]) * size)
    if most is None or most > _MOST_ELEMENTS or merged(call, [part.product for part in parts]) is None:
        return None
    return parts


def _heads(call: Call, name: str) -> _Heads | None:
    heads = call.tensor(name)
    swap = call.producer(heads, *PERMUTES, single_use=True)
    if swap is None or heads.rank != 4 or permutation(swap) != sdpa.SWAPPED:
        return None
    inner = swap.tensor("self")
    if not all(isinstance(size, int) for size in inner.shape[2:]):
        return None
    product = product_of_heads(swap, inner, single_use=True)
    return None if product is None or product.x.dtype is not heads.dtype else _Heads(inner.shape, product)


def _emit(call: Call, parts: list[_Heads], out: Ref, out_swapped: bool) -> None:
    (batch, rows, heads, size), kv_heads = parts[0].shape, parts[1].shape[2]
    whole = emit_merged(call, [part.product for part in parts])
    whole = call.view(whole, [batch, rows, heads + 2 * kv_heads, size])
    first = (0, heads, heads + kv_heads)
    sdpa.emit(call, out, out_swapped, sdpa.Slices((whole,) * 3, first, heads, kv_heads))
