# SPDX-License-Identifier: Apache-2.0
"""A decoder of transformers with its caches, as one module: tokens and positions in, logits out.

transformers calls the attention registered here under the name "pumice". Which caches it reads and writes is the
decoder's whose forward is running.
"""

from __future__ import annotations

import contextvars
from typing import Any

import torch
from torch import Tensor, nn
from transformers.masking_utils import AttentionMaskInterface
from transformers.modeling_utils import AttentionInterface

import pumice.passes.cached_attention  # noqa: F401 (registers the operator)
from pumice.llm.architectures import heads

_running: contextvars.ContextVar[Decoder] = contextvars.ContextVar("decoder")


class Decoder(nn.Module):
    """`rows`: "last", logits [B, V] of the last row; "all", logits [B, n, V]. cache: a dtype of floats for keys and
    values, or torch.int8, where each row of a head has a scale."""

    def __init__(self, model: nn.Module, batch: int, max_seq: int, cache: torch.dtype) -> None:
        super().__init__()
        self.model = model
        self.rows = "last"
        self.first: Tensor | None = None
        _, shared, size = heads(model.config)
        for layer in range(model.config.num_hidden_layers):
            for name in ("keys", "values"):
                zeros = torch.zeros(batch, shared, max_seq, size, dtype=cache)
                self.register_buffer(f"{name}_{layer}", zeros, persistent=False)
            if cache is torch.int8:
                self.register_buffer(f"scales_{layer}", torch.zeros(batch, shared, max_seq, 2), persistent=False)

    def forward(self, tokens: Tensor, first: Tensor) -> Tensor:
        """tokens [B, n], int64: new tokens. first [B], int64: the position of each sequence's first new token."""
        positions = first[:, None] + torch.arange(tokens.shape[1])
        self.first = first
        token = _running.set(self)
        try:
            keep = 1 if self.rows == "last" else 0
            logits = self.model(input_ids=tokens, position_ids=positions, use_cache=False, logits_to_keep=keep).logits
        finally:
            _running.reset(token)
            self.first = None
        return logits[:, -1] if self.rows == "last" else logits


def _attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Any,
    scaling: float | None = None,
    sliding_window: int | None = None,
    softcap: float | None = None,
    s_aux: Tensor | None = None,
    **_: Any,
) -> tuple[Tensor, None]:
    """What transformers calls: query [B, H, n, E], key and value [B, G, n, E] of the new rows."""
    decoder, layer = _running.get(), module.layer_idx
    names = [name for name in ("keys", "values", "scales") if hasattr(decoder, f"{name}_{layer}")]
    caches = [getattr(decoder, f"{name}_{layer}") for name in names]
    scale = query.shape[-1] ** -0.5 if scaling is None else float(scaling)
    attend = torch.ops.pumice.cached_attention_int8 if "scales" in names else torch.ops.pumice.cached_attention
    key, value = (rows.to(query.dtype if "scales" in names else caches[0].dtype) for rows in (key, value))
    out, *new = attend(query, key, value, *caches, decoder.first, scale, sliding_window or 0, softcap or 0.0, s_aux)
    for cache, rows in zip(caches, new, strict=True):
        cache.copy_(rows)
    return out, None


def _no_mask(*_: Any, **__: Any) -> None:
    """The attention knows by the positions which rows see one another."""


AttentionInterface.register("pumice", _attention)
AttentionMaskInterface.register("pumice", _no_mask)
