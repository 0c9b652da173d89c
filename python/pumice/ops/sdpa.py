# SPDX-License-Identifier: Apache-2.0
"""scaled_dot_product_attention; a transpose(1, 2) in front of it costs nothing. See ops/sdpa.cpp."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch._subclasses.fake_tensor import FakeTensor

from pumice.format.ir import DType
from pumice.lowering.call import Call
from pumice.lowering.operands import Size, broadcast, fits_a_binding, is_one, numel
from pumice.lowering.permuted import look_through
from pumice.lowering.ref import Ref
from pumice.lowering.registry import lowers
from pumice.lowering.sizes import same_shape

aten = torch.ops.aten
SDPA = aten.scaled_dot_product_attention.default
SWAPPED = [0, 2, 1, 3]
_MOST_READ = 1 << 24  # elements of a constant mask that are looked at


@dataclass(frozen=True)
class Slice:
    """Heads that attention reads in place: those of `x` from number `first` on. x: [B, L, H, E], [B, H, L, E] where
    it is not `swapped`."""

    x: Ref
    first: int = 0
    swapped: bool = True


def can_be_sliced(shape: Sequence[Size]) -> bool:
    """Whether attention may read a part of a tensor of this shape in place: it is then cut by its batch alone, heads of
    their own by heads, too."""
    return fits_a_binding(shape)


@lowers(SDPA)
def sdpa(call: Call) -> None:
    """Attention over [batch, heads, rows, size]; lower ranks get dimensions of 1, higher ones one batch."""
    out = call.out
    if out.rank == 4:
        emit(call, out, False)
    else:
        four = call.temp(out.dtype, _as_four(out))
        emit(call, four, False)
        call.emit("view", four, list(out.shape))


def emit(
    call: Call,
    out: Ref,
    out_swapped: bool,
    slices: Sequence[Slice | None] = (),
    rows: tuple[Size, Size, int] | None = None,
) -> None:
    """The attention of `call` into `out`. `out_swapped`: [batch, rows, heads, size] instead of heads first. `slices`:
    of queries, keys and values, of a call with four dimensions; None: a tensor of its own. `rows`: start, end and step
    of the rows of queries that `out` has, of an attention that is not causal."""
    q, k, v = (call.tensor(name) for name in ("query", "key", "value"))
    if call["dropout_p"] != 0:
        call.refuse("attention with dropout")
    if not q.rank == k.rank == v.rank or q.rank < 2:
        call.refuse(f"q, k and v of ranks {q.rank}, {k.rank} and {v.rank}; one rank from 2 on is needed")
    lead: list[Size] = []
    for ref in (q, k, v):
        lead = broadcast(lead, ref.shape[:-3])
    mask = _mask(call, q, lead)
    scale = call["scale"]
    if scale is None:
        if isinstance(q.shape[-1], torch.SymInt):
            call.refuse("the size of a head changes from call to call")
        scale = 1 / math.sqrt(q.shape[-1])
    read = [slices[i] if slices and slices[i] else _four(call, ref, lead) for i, ref in enumerate((q, k, v))]
    if rows is not None:
        count = out.shape[1 if out_swapped else 2]
        read[0] = replace(read[0], x=_rows(call, read[0].x, 1 if read[0].swapped else 2, rows, count))
        if mask is not None and not is_one(mask.shape[2]):
            mask = _rows(call, mask, 2, rows, count)
    options = (mask, call["is_causal"], scale)
    swapped = (*(each.swapped for each in read), out_swapped)
    heads = (*(each.first for each in read), q.shape[-3], k.shape[-3]) if slices else ()
    call.emit("sdpa_heads" if slices else "sdpa", *(each.x for each in read), *options, *swapped, *heads, out=out)


def _rows(call: Call, ref: Ref, dim: int, rows: tuple[Size, Size, int], count: Size) -> Ref:
    """`count` rows of `ref`, which are dimension `dim`."""
    shape = [*ref.shape[:dim], count, *ref.shape[dim + 1 :]]
    return call.emit("slice", ref, dim, *rows, out=call.temp(ref.dtype, shape))


def _four(call: Call, ref: Ref, lead: list[Size]) -> Slice:
    """`ref` with four dimensions. `lead`: the dimensions before the last three, which become the batch."""
    if ref.rank == 4:
        inner, dims = look_through(call, ref)
        return Slice(inner) if dims == SWAPPED else Slice(ref, swapped=False)
    if not same_shape(ref.shape[:-3], lead):
        shape = [*lead, *ref.shape[-3:]]
        ref = call.emit("expand", ref, shape, out=call.temp(ref.dtype, shape))
    return Slice(call.view(ref, _as_four(ref)), swapped=False)


def _as_four(ref: Ref) -> list[Size]:
    shape = list(ref.shape)
    if len(shape) > 4:
        return [numel(shape[:-3]), *shape[-3:]]
    return [*shape[:-2], *[1] * (4 - len(shape)), *shape[-2:]]


def _mask(call: Call, q: Ref, lead: list[Size]) -> Ref | None:
    """The mask with four dimensions, bool or of q's dtype; the first of three is the batch, as it is for q."""
    if not call.has("attn_mask"):
        return None
    mask = call.tensor("attn_mask")
    if _leaves_all_in(call, mask):
        return None
    if mask.dtype is not DType.bool:
        mask = call.cast(mask, q.dtype)
    if mask.rank > q.rank:
        call.refuse(f"an attention mask of rank {mask.rank} for queries of rank {q.rank}")
    padded = [*[1] * (q.rank - mask.rank), *mask.shape]
    if q.rank <= 4:
        return call.view(mask, [*padded[:-2], *[1] * (4 - q.rank), *padded[-2:]])
    if all(map(is_one, padded[:-3])):
        return call.view(mask, [1, *padded[-3:]])
    return _four(call, call.view(mask, padded), lead).x


def _leaves_all_in(call: Call, mask: Ref) -> bool:
    """Whether the mask is the same for all heads and a constant of True only, as transformers make for images. While
    ExecuTorch partitions a program, its constants have no values, and no mask is known to be."""
    if not mask.is_constant or mask.dtype is not DType.bool or not all(map(is_one, mask.shape[:-2])):
        return False
    if numel(mask.shape) > _MOST_READ:
        return False
    value = call.value(mask)
    return not isinstance(value, FakeTensor) and bool(value.all())
