# SPDX-License-Identifier: Apache-2.0
"""Small decoders whose layers glsl/decoder_layers.glsl runs as one dispatch, and the files made of them."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn
from transformers import AutoConfig, AutoModelForCausalLM

import pumice
from pumice.llm.decoder import Decoder
from pumice.llm.methods import lower_methods, methods
from pumice.llm.open_source import open_source
from pumice.llm.skeleton import Quantization, skeleton
from pumice.llm.weight_forms import Scheme

MERGED, SINGLE = "like_gpu", "like_gpu,-persistent"
SIZES = {"hidden_size": 128, "intermediate_size": 192, "num_attention_heads": 4, "num_key_value_heads": 2}
# model_type, its settings, columns of a group, tokens
CASES = {
    "llama": ("llama", {"num_hidden_layers": 3}, 32, 20),
    "one_layer": ("llama", {"num_hidden_layers": 1}, 64, 6),
    "bias": ("qwen2", {}, 32, 12),
    "norms_of_heads": ("qwen3", {"head_dim": 64}, 64, 12),
    "window": ("mistral", {"sliding_window": 7}, 64, 20),
    "wide_groups": ("llama", {"hidden_size": 256, "intermediate_size": 256}, 128, 12),
    "one_head": ("llama", {"num_key_value_heads": 1, "intermediate_size": 320, "head_dim": 16}, 32, 12),
    "wide_heads": ("llama", {"head_dim": 128, "num_attention_heads": 2, "num_key_value_heads": 2}, 32, 12),
    "shares": ("llama", {"rope_parameters": {"rope_type": "default", "rope_theta": 1e6}}, 32, 300),
}


def model_of(case: str, **more: object) -> nn.Module:
    kind, settings, _, tokens = CASES[case]
    common = {
        "vocab_size": 64,
        "num_hidden_layers": 2,
        "max_position_embeddings": max(tokens, 128),
        "pad_token_id": None,
    }
    config = AutoConfig.for_model(kind, **{**common, **SIZES, **settings, **more}, initializer_range=0.08)
    torch.manual_seed(1)
    model = AutoModelForCausalLM.from_config(config, attn_implementation="eager").eval()
    for name, weight in model.named_parameters():
        if name.endswith("bias"):
            nn.init.normal_(weight, std=0.3)
        elif weight.dim() == 1:
            nn.init.normal_(weight, mean=1, std=0.2)
    return model.half()


def program_of(model: nn.Module, group: int, tokens: int, names: Sequence[str] = ("decode",)) -> bytes:
    source = open_source(model)
    scheme = Scheme("int4", group)
    made = skeleton(source.config, torch.float16, tokens, source.weight, Quantization(scheme, None, scheme))
    weights = {f"model.{name}": read for name, read in made.weights.items()}
    module = Decoder(made.model, 1, tokens, torch.float16).eval()
    chosen = [method for method in methods(1, tokens) if method.name in names]
    return bytes(lower_methods(module, chosen, pumice.ExportOptions(weights=weights)))
