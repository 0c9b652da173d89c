# SPDX-License-Identifier: Apache-2.0
"""A small decoder with key/value caches in registered buffers, and greedy generation with it."""

from __future__ import annotations

import torch
from torch import nn

WIDTH, HEADS, KV_HEADS, LAYERS, VOCAB, SLOTS = 64, 4, 2, 2, 97, 48


def rotate(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    a, b = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-b, a), dim=-1) * sin


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.head = WIDTH // HEADS
        self.q, self.o = nn.Linear(WIDTH, WIDTH, bias=False), nn.Linear(WIDTH, WIDTH, bias=False)
        self.k, self.v = (nn.Linear(WIDTH, KV_HEADS * self.head, bias=False) for _ in range(2))
        self.register_buffer("k_cache", torch.zeros(1, KV_HEADS, SLOTS, self.head))
        self.register_buffer("v_cache", torch.zeros(1, KV_HEADS, SLOTS, self.head))

    def forward(self, x, pos, cos, sin, mask):
        batch, steps, _ = x.shape
        q = rotate(self.q(x).view(batch, steps, HEADS, self.head).transpose(1, 2), cos, sin)
        k = rotate(self.k(x).view(batch, steps, KV_HEADS, self.head).transpose(1, 2), cos, sin)
        v = self.v(x).view(batch, steps, KV_HEADS, self.head).transpose(1, 2)
        self.k_cache.index_copy_(2, pos, k)
        self.v_cache[:, :, pos] = v
        out = nn.functional.scaled_dot_product_attention(q, self.k_cache, self.v_cache, attn_mask=mask, enable_gqa=True)
        return self.o(out.transpose(1, 2).reshape(batch, steps, WIDTH))


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.RMSNorm(WIDTH), nn.RMSNorm(WIDTH)
        self.attention = Attention()
        self.gate, self.up, self.down = nn.Linear(WIDTH, 128), nn.Linear(WIDTH, 128), nn.Linear(128, WIDTH)

    def forward(self, x, *rest):
        x = x + self.attention(self.norm1(x), *rest)
        h = self.norm2(x)
        return x + self.down(nn.functional.silu(self.gate(h)) * self.up(h))


class Decoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCAB, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm, self.head = nn.RMSNorm(WIDTH), nn.Linear(WIDTH, VOCAB)
        angle = torch.outer(torch.arange(SLOTS), 1e4 ** (-torch.arange(0, 16, 2) / 16)).repeat(1, 2)
        self.register_buffer("cos", angle.cos(), persistent=False)
        self.register_buffer("sin", angle.sin(), persistent=False)

    def forward(self, ids: torch.Tensor, pos: torch.Tensor) -> torch.Tensor:
        mask = torch.arange(SLOTS) <= pos.unsqueeze(-1)
        x = self.embedding(ids)
        for block in self.blocks:
            x = block(x, pos, self.cos[pos], self.sin[pos], mask)
        return self.head(self.norm(x))


def greedy(step, prompt: torch.Tensor, count: int) -> tuple[list[int], list[torch.Tensor]]:
    logits = step(prompt, torch.arange(prompt.shape[1]))[:, -1]
    tokens, seen = [], []
    for index in range(count):
        seen.append(logits)
        tokens.append(int(logits.argmax()))
        logits = step(torch.tensor([[tokens[-1]]]), torch.tensor([prompt.shape[1] + index]))[:, -1]
    return tokens, seen
