# SPDX-License-Identifier: Apache-2.0
"""`pumice::cached_attention`: attention with key/value caches, as one operator of an exported graph.

The body below is plain PyTorch: what runs in eager mode, and the reference of the device's kernels.
"""

from __future__ import annotations

import torch
from torch import Tensor


@torch.library.custom_op("pumice::cached_attention", mutates_args=())
def cached_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    key_cache: Tensor,
    value_cache: Tensor,
    first: Tensor,
    scale: float,
    window: int = 0,
    softcap: float = 0.0,
    sinks: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Writes L new rows to the caches, then attends to them and to all rows before.

    query [B, H, L, E]; key [B, G, L, E] and value [B, G, L, F], of the new rows, G divides H; key_cache [B, G, S, E];
    value_cache [B, G, S, F]; first [B], int64: the position of each sequence's first new row.
    Row l sees the positions s <= first + l, and with a window > 0 only those with s > first + l - window.
    score = scale * q . k; with a softcap c > 0 then c * tanh(score / c); sinks [H]: one more score of each head, whose
    value is 0. Returns the attention [B, L, H, F] and the two caches with the new rows.
    Raises IndexError when first < 0 or first + L > S.
    """
    rows, capacity, heads = query.shape[2], key_cache.shape[2], query.shape[1]
    positions = first[:, None] + torch.arange(rows, device=first.device)
    if bool((positions < 0).any() | (positions >= capacity).any()):
        raise IndexError(f"positions {positions.tolist()} are not all in a cache of {capacity}")
    index = positions[:, None, :, None]
    keys = key_cache.scatter(2, index.expand(key.shape), key)
    values = value_cache.scatter(2, index.expand(value.shape), value)
    shared = heads // keys.shape[1]
    k, v = (t.float().repeat_interleave(shared, dim=1) for t in (keys, values))
    scores = query.float() @ k.transpose(-1, -2) * scale
    if softcap > 0:
        scores = softcap * torch.tanh(scores / softcap)
    at = torch.arange(capacity, device=first.device)
    seen = at <= positions[..., None]
    if window > 0:
        seen &= at > positions[..., None] - window
    scores = scores.masked_fill(~seen[:, None], float("-inf"))
    if sinks is not None:
        scores = torch.cat((scores, sinks.float().view(1, heads, 1, 1).expand(*scores.shape[:-1], 1)), dim=-1)
    weights = scores.softmax(-1)[..., :capacity]
    return (weights @ v).to(query.dtype).transpose(1, 2).contiguous(), keys, values


@cached_attention.register_fake
def _(query, key, value, key_cache, value_cache, first, scale, window=0, softcap=0.0, sinks=None):
    batch, heads, rows, _ = query.shape
    out = query.new_empty((batch, rows, heads, value.shape[-1]))
    return out, torch.empty_like(key_cache), torch.empty_like(value_cache)
