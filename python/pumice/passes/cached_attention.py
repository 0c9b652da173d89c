# SPDX-License-Identifier: Apache-2.0
"""`pumice::cached_attention`: attention with key/value caches, as one operator of an exported graph; with rows of int8
`pumice::cached_attention_int8`.

The bodies below are plain PyTorch: what runs in eager mode, and the reference of the device's kernels.
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
    positions = _positions(key_cache, first, key.shape[2])
    keys, values = _written(key_cache, positions, key), _written(value_cache, positions, value)
    out = _attend(query, keys.float(), values.float(), positions, scale, window, softcap, sinks)
    return out, keys, values


@cached_attention.register_fake
def _(query, key, value, key_cache, value_cache, first, scale, window=0, softcap=0.0, sinks=None):
    batch, heads, rows, _ = query.shape
    out = query.new_empty((batch, rows, heads, value.shape[-1]))
    return out, torch.empty_like(key_cache), torch.empty_like(value_cache)


@torch.library.custom_op("pumice::cached_attention_int8", mutates_args=())
def cached_attention_int8(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    key_cache: Tensor,
    value_cache: Tensor,
    scales: Tensor,
    first: Tensor,
    scale: float,
    window: int = 0,
    softcap: float = 0.0,
    sinks: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """cached_attention with caches of int8, whose rows are written by `int8_rows` and read as integer * scale.

    scales [B, G, S, 2], float32: of each row of key_cache and of value_cache. New rows are read as they are written.
    Returns the attention, the two caches and their scales with the new rows.
    """
    positions = _positions(key_cache, first, key.shape[2])
    (new_keys, key_scales), (new_values, value_scales) = int8_rows(key), int8_rows(value)
    keys, values = _written(key_cache, positions, new_keys), _written(value_cache, positions, new_values)
    scales = _written(scales, positions, torch.cat((key_scales, value_scales), dim=-1))
    out = _attend(query, keys * scales[..., :1], values * scales[..., 1:], positions, scale, window, softcap, sinks)
    return out, keys, values, scales


@cached_attention_int8.register_fake
def _(query, key, value, key_cache, value_cache, scales, first, scale, window=0, softcap=0.0, sinks=None):
    batch, heads, rows, _ = query.shape
    out = query.new_empty((batch, rows, heads, value.shape[-1]))
    return out, torch.empty_like(key_cache), torch.empty_like(value_cache), torch.empty_like(scales)


def int8_rows(x: Tensor) -> tuple[Tensor, Tensor]:
    """Rows x [..., E] as integers [..., E], int8, and scales [..., 1], float32, with max|x| = 127 * scale.

    Integers are rounded to even at a tie: each element is off by at most half a scale, max|x| / 254. A row with a NaN
    or an infinity has zeros, and that for a scale: it is read as NaN.
    """
    x = x.float()
    scale = x.abs().amax(-1, keepdim=True) / 127
    q = (x / scale).round().clamp(-127, 127)
    return torch.where(scale.isfinite() & (scale > 0), q, 0).to(torch.int8), scale


def _positions(cache: Tensor, first: Tensor, rows: int) -> Tensor:
    """Of the new rows, [B, L]."""
    positions = first[:, None] + torch.arange(rows, device=first.device)
    if bool((positions < 0).any() | (positions >= cache.shape[2]).any()):
        raise IndexError(f"positions {positions.tolist()} are not all in a cache of {cache.shape[2]}")
    return positions


def _written(cache: Tensor, positions: Tensor, rows: Tensor) -> Tensor:
    return cache.scatter(2, positions[:, None, :, None].expand(rows.shape), rows)


def _attend(
    query: Tensor,
    keys: Tensor,
    values: Tensor,
    positions: Tensor,
    scale: float,
    window: int,
    softcap: float,
    sinks: Tensor | None,
) -> Tensor:
    """keys [B, G, S, E] and values [B, G, S, F], float32, of all positions."""
    heads, capacity = query.shape[1], keys.shape[2]
    shared = heads // keys.shape[1]
    k, v = (t.repeat_interleave(shared, dim=1) for t in (keys, values))
    scores = query.float() @ k.transpose(-1, -2) * scale
    if softcap > 0:
        scores = softcap * torch.tanh(scores / softcap)
    at = torch.arange(capacity, device=positions.device)
    seen = at <= positions[..., None]
    if window > 0:
        seen &= at > positions[..., None] - window
    scores = scores.masked_fill(~seen[:, None], float("-inf"))
    if sinks is not None:
        scores = torch.cat((scores, sinks.float().view(1, heads, 1, 1).expand(*scores.shape[:-1], 1)), dim=-1)
    weights = scores.softmax(-1)[..., :capacity]
    return (weights @ v).to(query.dtype).transpose(1, 2).contiguous()
