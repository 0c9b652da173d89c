# SPDX-License-Identifier: Apache-2.0
"""Rotary embeddings as tables: cos and sin of all positions, computed once by the model's own module."""

from __future__ import annotations

import inspect
from typing import Any

import torch
from torch import Tensor, nn


class RopeTable(nn.Module):
    """Stands for a rotary embedding; cos and sin [max_seq, R] for each kind of layer that has its own frequencies."""

    def __init__(self, rotary: nn.Module, max_seq: int, dtype: torch.dtype) -> None:
        super().__init__()
        self.kinds: list[str | None] = [None]
        if "layer_type" in inspect.signature(rotary.forward).parameters:
            self.kinds = list(rotary.layer_types)
        positions = torch.arange(max_seq)[None]
        for kind in self.kinds:
            like = torch.zeros(1, dtype=dtype)
            cos, sin = rotary(like, positions, *([] if kind is None else [kind]))
            self.register_buffer(f"cos_{kind}", cos[0].contiguous(), persistent=False)
            self.register_buffer(f"sin_{kind}", sin[0].contiguous(), persistent=False)

    def forward(self, x: Tensor, position_ids: Tensor, layer_type: str | None = None) -> tuple[Tensor, Tensor]:
        """cos, sin [B, n, R] of position_ids [B, n]."""
        return getattr(self, f"cos_{layer_type}")[position_ids], getattr(self, f"sin_{layer_type}")[position_ids]


def replace_rotary(model: nn.Module, max_seq: int, dtype: torch.dtype, factors: Tensor | None = None) -> None:
    """Puts tables in the place of every rotary embedding of `model`. factors: what its frequencies are divided by."""
    found: list[tuple[nn.Module, str, Any]] = [
        (parent, name, child)
        for parent in model.modules()
        for name, child in parent.named_children()
        if name.endswith("rotary_emb")
    ]
    for parent, name, rotary in found:
        if factors is not None:
            rotary.inv_freq = rotary.inv_freq / factors
        setattr(parent, name, RopeTable(rotary, max_seq, dtype))
