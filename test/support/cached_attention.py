# SPDX-License-Identifier: Apache-2.0
"""An attention layer over caches as transformers writes it, for the tests of the operator and of its fusion."""

from __future__ import annotations

import torch

from pumice.passes.cached_attention import int8_rows


class CachedAttention(torch.nn.Module):
    """Projections, norms, rotation and attention, as transformers writes them. x: [B, L, width]; first: [B].

    int8: the caches are of int8 with scales, which `.to(dtype)` must leave as they are: `of_floats`."""

    def __init__(
        self,
        heads,
        kv_heads,
        size,
        capacity,
        batch=1,
        rotated=0,
        norm=None,
        sinks=False,
        bias=False,
        int8=False,
        **options,
    ):
        super().__init__()
        width, self.size, self.rotated, self.norm, self.options = 32, size, rotated, norm, options
        self.q = torch.nn.Linear(width, heads * size, bias=bias)
        self.k, self.v = (torch.nn.Linear(width, kv_heads * size, bias=bias) for _ in range(2))
        for name in ("key_cache", "value_cache"):
            self.register_buffer(name, torch.randn(batch, kv_heads, capacity, size))
        self.register_buffer("scales", None)
        if int8:
            (self.key_cache, keys), (self.value_cache, values) = map(int8_rows, (self.key_cache, self.value_cache))
            self.scales = torch.cat((keys, values), dim=-1)
        self.q_norm, self.k_norm = (torch.nn.Parameter(1 + 0.1 * torch.randn(size)) for _ in range(2))
        angle = torch.outer(torch.arange(capacity), 1e4 ** -torch.linspace(0, 1, max(rotated // 2, 1))).repeat(1, 2)
        self.register_buffer("cos", angle.cos())
        self.register_buffer("sin", angle.sin())
        self.sinks = torch.nn.Parameter(torch.randn(heads)) if sinks else None

    def of_floats(self, dtype: torch.dtype) -> CachedAttention:
        """`.to(dtype)`, but for the scales of int8 caches."""
        scales = self.scales
        self.to(dtype)
        self.scales = scales
        return self

    def normed(self, x, weight):
        return weight * (x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6)).to(x.dtype)

    def rope(self, x, cos, sin):
        r = self.rotated
        part, rest = x[..., :r], x[..., r:]
        if r == x.shape[-1]:
            part = x
        half = torch.cat((-part[..., r // 2 :], part[..., : r // 2]), dim=-1)
        part = part * cos.unsqueeze(1) + half * sin.unsqueeze(1)
        return part if r == x.shape[-1] else torch.cat((part, rest), dim=-1)

    def forward(self, x, first):
        batch, rows, _ = x.shape
        q, k, v = (layer(x).view(batch, rows, -1, self.size) for layer in (self.q, self.k, self.v))
        if self.norm == "before":
            q, k = self.normed(q, self.q_norm), self.normed(k, self.k_norm)
        q, k, v = (t.transpose(1, 2) for t in (q, k, v))
        if self.norm == "after":
            q, k = self.normed(q, self.q_norm), self.normed(k, self.k_norm)
        if self.rotated:
            positions = first[:, None] + torch.arange(rows)
            cos, sin = self.cos[positions], self.sin[positions]
            q, k = self.rope(q, cos, sin), self.rope(k, cos, sin)
        caches, attend = (self.key_cache, self.value_cache), torch.ops.pumice.cached_attention
        if self.scales is not None:
            caches, attend = (*caches, self.scales), torch.ops.pumice.cached_attention_int8
        out, *new = attend(q, k, v, *caches, first, self.size**-0.5, sinks=self.sinks, **self.options)
        for cache, written in zip(caches, new, strict=True):
            cache.copy_(written)
        return out.reshape(batch, rows, -1)
