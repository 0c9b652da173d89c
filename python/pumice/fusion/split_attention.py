# SPDX-License-Identifier: Apache-2.0
"""scaled_dot_product_attention of slices of one tensor, as models with one layer for queries, keys and values take them
-> the attention reads them in place: `qkv(x).split(..)`, and `qkv(x).reshape(B, L, 3, H, E).permute(2, 0, 3, 1, 4)`."""

from __future__ import annotations

import torch

from pumice.fusion.attention_slices import Slices, finds_slices
from pumice.lowering.call import Call
from pumice.lowering.operands import axis
from pumice.lowering.permuted import look_through
from pumice.lowering.quantized_activation import before_views
from pumice.lowering.ref import Ref
from pumice.lowering.sizes import same
from pumice.ops import sdpa
from pumice.ops.copy import SPLITS, UNBINDS

aten = torch.ops.aten
_PARTS_FIRST = [2, 0, 3, 1, 4]  # [B, L, parts, H, E] with heads before rows, and the parts before all


@finds_slices
def split_attention(call: Call) -> Slices | None:
    """Matches an attention of four dimensions that has at least one such input."""
    inputs = [call.tensor(name) for name in ("query", "key", "value")]
    fixed = all(ref.rank == 4 and isinstance(ref.shape[1], int) and isinstance(ref.shape[3], int) for ref in inputs)
    found = [_columns(call, ref) for ref in inputs] if fixed else [None]
    if not any(found):
        return None
    return lambda: [each and _slice(call, ref, *each) for ref, each in zip(inputs, found, strict=True)]


def _slice(call: Call, heads: Ref, source: Ref, begin: int) -> sdpa.Slice:
    return sdpa.Slice(call.view(source, _whole(heads, source)), begin // heads.shape[3])


def _whole(heads: Ref, source: Ref) -> list[int | torch.SymInt]:
    return [heads.shape[0], heads.shape[2], source.shape[-1] // heads.shape[3], heads.shape[3]]


def _columns(call: Call, heads: Ref) -> tuple[Ref, int] | None:
    """(source, begin) with heads [B, H, L, E] = those columns of source [.., N] from `begin` on, H * E of them."""
    inner, dims = look_through(call, heads)
    rows = before_views(call, inner, rows=False)
    found = None
    if dims != sdpa.SWAPPED:
        found = _of_parts(call, heads)
    elif same(rows.shape[-1], heads.shape[1] * heads.shape[3]):
        found = _of_split(call, rows) or _of_slice(call, rows)
    if found is None or not isinstance(found[0].shape[-1], int):
        return None
    source, begin = found
    size = heads.shape[3]
    whole = source.shape[-1] % size == 0 and begin % size == 0
    return found if whole and sdpa.can_be_sliced(source.shape) else None


def _of_split(call: Call, rows: Ref) -> tuple[Ref, int] | None:
    split = call.producer(rows, *SPLITS)
    if split is None or axis(split["dim"], rows.rank) != rows.rank - 1:
        return None
    return split.tensor("self"), sum(out.shape[-1] for out in split.outs[: rows.node.args[1]])


def _of_slice(call: Call, rows: Ref) -> tuple[Ref, int] | None:
    cut = call.producer(rows, aten.slice.Tensor, aten.slice_copy.Tensor)
    if cut is None or axis(cut["dim"], rows.rank) != rows.rank - 1 or cut["step"] != 1:
        return None
    source, start = cut.tensor("self"), cut["start"] or 0
    columns = source.shape[-1]
    if not isinstance(start, int) or not isinstance(columns, int):
        return None
    return source, min(max(start + columns, 0) if start < 0 else start, columns)


def _of_parts(call: Call, heads: Ref) -> tuple[Ref, int] | None:
    pick = call.producer(heads, aten.select.int, aten.select_copy.int, *UNBINDS)
    if pick is None or axis(pick["dim"], heads.rank + 1) != 0:
        return None
    parts = pick.tensor("self")
    inner, dims = look_through(pick, parts)
    source = before_views(pick, inner, rows=False)
    if dims != _PARTS_FIRST or not isinstance(parts.shape[0], int):
        return None
    index = heads.node.args[1] if pick.target in UNBINDS else pick["index"]
    columns = heads.shape[1] * heads.shape[3]
    if not same(source.shape[-1], parts.shape[0] * columns) or not isinstance(index, int):
        return None
    return source, index % parts.shape[0] * columns
