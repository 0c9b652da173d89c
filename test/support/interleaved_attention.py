# SPDX-License-Identifier: Apache-2.0
"""Attention over caches with rotary embeddings of neighbours, in ExecuTorch's form."""

from __future__ import annotations

import torch

from pumice.passes.cached_attention import int8_rows

WIDTH, HEADS, GROUPS, SIZE, SLOTS = 32, 4, 2, 16, 12


class Attention(torch.nn.Module):
    """`form`: how cos and sin are picked, or what is not as in a rotation. int8: the caches are of int8 with scales."""

    def __init__(self, form: str = "item", slots: int = SLOTS, norm: bool = False, int8: bool = False) -> None:
        super().__init__()
        self.form, self.norm = form, norm
        self.q = torch.nn.Linear(WIDTH, HEADS * SIZE, bias=False)
        self.k, self.v = (torch.nn.Linear(WIDTH, GROUPS * SIZE, bias=False) for _ in range(2))
        self.q_norm, self.k_norm = (torch.nn.Parameter(1 + 0.1 * torch.randn(SIZE)) for _ in range(2))
        for name in ("keys", "values"):
            self.register_buffer(name, torch.randn(1, GROUPS, SLOTS, SIZE))
        self.register_buffer("scales", None)
        if int8:
            (self.keys, keys), (self.values, values) = map(int8_rows, (self.keys, self.values))
            self.scales = torch.cat((keys, values), dim=-1)
        angle = torch.outer(torch.arange(slots), 1e2 ** -torch.linspace(0, 1, SIZE // 2))
        self.register_buffer("cos", angle.cos())
        self.register_buffer("sin", angle.sin())

    def of_floats(self, dtype: torch.dtype) -> Attention:
        """`.to(dtype)`, but for the scales of int8 caches."""
        scales = self.scales
        self.to(dtype)
        self.scales = scales
        return self

    def angles(self, position: torch.Tensor, rows: int) -> tuple[torch.Tensor, torch.Tensor]:
        if self.form == "index":
            return self.cos[position], self.sin[position]
        at = (position + 1 if self.form == "late" else position)[-1].item()
        torch._check_is_size(at)
        torch._check(at + rows <= self.cos.shape[0])
        return self.cos.narrow(0, at, rows), self.sin.narrow(0, at, rows)

    def rotate(self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        """x [1, L, heads, E]."""
        a, b = x.float().reshape(*x.shape[:-1], -1, 2).unbind(-1)
        if self.form == "swapped":
            a, b = b, a
        cos, sin = (t.view(1, t.shape[0], 1, t.shape[1]) for t in (cos, sin))
        low = a * cos + b * sin if self.form == "other sign" else a * cos - b * sin
        high = a * sin + (b * (cos + 1) if self.form == "other factor" else b * cos)
        parts = [high, low] if self.form == "other order" else [low, high]
        return torch.stack(parts, dim=-1).flatten(3).type_as(x)

    def normed(self, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6) * weight if self.norm else x

    def forward(self, x: torch.Tensor, position: torch.Tensor) -> torch.Tensor:
        batch, rows, _ = x.shape
        q, k, v = (layer(x).view(batch, rows, -1, SIZE) for layer in (self.q, self.k, self.v))
        q, k = self.normed(q, self.q_norm), self.normed(k, self.k_norm)
        angles = self.angles(position, rows)
        q, k = self.rotate(q, *angles), self.rotate(k, *angles)
        heads_first = (t.transpose(1, 2) for t in (q, k, v))
        caches, attend = (self.keys, self.values), torch.ops.pumice.cached_attention
        if self.scales is not None:
            caches, attend = (*caches, self.scales), torch.ops.pumice.cached_attention_int8
        out, *new = attend(*heads_first, *caches, position, SIZE**-0.5)
        for cache, written in zip(caches, new, strict=True):
            cache.copy_(written)
        return out.reshape(batch, rows, -1)
