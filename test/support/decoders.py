# SPDX-License-Identifier: Apache-2.0
"""Decoders of every known architecture with random weights: small ones with the proportions of the real ones, and two
layers of the published widths."""

from __future__ import annotations

from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM

VOCABULARY, MAX_SEQ = 96, 64
_COMMON: dict[str, Any] = {
    "hidden_size": 64,
    "intermediate_size": 160,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": VOCABULARY,
    "max_position_embeddings": MAX_SEQ,
    "pad_token_id": None,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
_TWO_KINDS = {"layer_types": ["sliding_attention", "full_attention"], "sliding_window": 6, "head_dim": 32}
_ROPES = {
    "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
    "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1e6},
}


def _widths(hidden: int, intermediate: int, heads: int, kv_heads: int | None, **more: int) -> dict[str, Any]:
    names = ("hidden_size", "intermediate_size", "num_attention_heads", "num_key_value_heads")
    return {**dict(zip(names, (hidden, intermediate, heads, kv_heads), strict=True)), "vocab_size": 4096, **more}


# What sets each apart, by transformers' model_type: a window, soft caps, two ropes, scales, biases, a part of the head.
CASES: dict[str, dict[str, Any]] = {
    "llama": {
        "rope_parameters": {
            "rope_type": "llama3",
            "rope_theta": 5e5,
            "factor": 8.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 32,
        },
        "tie_word_embeddings": True,
    },
    "qwen2": {"use_sliding_window": True, "max_window_layers": 1, "sliding_window": 6, "tie_word_embeddings": True},
    "qwen3": {"head_dim": 32},
    "gemma2": {
        **_TWO_KINDS,
        "attn_logit_softcapping": 5.0,
        "final_logit_softcapping": 3.0,
        "query_pre_attn_scalar": 24,
    },
    "gemma3_text": {**_TWO_KINDS, "query_pre_attn_scalar": 24, "rope_parameters": _ROPES},
    "phi3": {"sliding_window": 9},
    "mistral": {"sliding_window": 7, "head_dim": 32},
    "olmo2": {"num_key_value_heads": 4},
    "granite": {
        "embedding_multiplier": 12.0,
        "attention_multiplier": 0.0625,
        "residual_multiplier": 0.22,
        "logits_scaling": 2.0,
    },
    "stablelm": {"partial_rotary_factor": 0.25, "use_qkv_bias": True, "qk_layernorm": True},
    "gpt2": {"num_key_value_heads": None, "scale_attn_by_inverse_layer_idx": True, "n_inner": 160},
    "gpt_neox": {"rotary_pct": 0.25, "num_key_value_heads": None},
    "qwen3_moe": {"head_dim": 32, "num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 48},
    "olmoe": {"num_experts": 8, "num_experts_per_tok": 2, "clip_qkv": 1.0},
    "mixtral": {"sliding_window": 7, "num_local_experts": 8, "num_experts_per_tok": 2},
}

# Of a published model each; the vocabulary is cut so that the model fits in memory several times, also in fp64.
WIDTHS: dict[str, dict[str, Any]] = {
    "llama": _widths(2048, 8192, 32, 8),  # Llama-3.2-1B
    "qwen2": _widths(1536, 8960, 12, 2),  # Qwen2-1.5B
    "qwen3": _widths(1024, 3072, 16, 8, head_dim=128),  # Qwen3-0.6B
    "gemma2": _widths(2304, 9216, 8, 4, head_dim=256),  # gemma-2-2b
    "gemma3_text": _widths(1152, 6912, 4, 1, head_dim=256),  # gemma-3-1b
    "phi3": _widths(3072, 8192, 32, 32),  # Phi-3-mini-4k
    "mistral": _widths(4096, 14336, 32, 8, head_dim=128),  # Mistral-7B
    "olmo2": _widths(2048, 8192, 16, 16),  # OLMo-2-0425-1B
    "granite": _widths(2048, 8192, 32, 8),  # granite-3.1-2b
    "stablelm": _widths(2560, 6912, 32, 32),  # stablelm-3b-4e1t
    "gpt2": _widths(768, 3072, 12, None, n_inner=3072),  # gpt2
    "gpt_neox": _widths(2048, 8192, 8, None),  # pythia-1b
}


def decoder(model_type: str, dtype: torch.dtype = torch.float32, **more: Any) -> torch.nn.Module:
    """The model, with weights large enough that every part changes the logits. more: of its configuration."""
    torch.manual_seed(0)
    facts = {**_COMMON, **CASES[model_type], **more}
    facts = {name: value for name, value in facts.items() if value is not None or name == "pad_token_id"}
    config = AutoConfig.for_model(model_type, **facts)
    model = AutoModelForCausalLM.from_config(config, dtype=dtype, attn_implementation="eager").eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            wide = parameter.dim() > 1
            noise = torch.randn_like(parameter) * (parameter.shape[-1] ** -0.5 if wide else 0.2)
            parameter.copy_(noise if wide or name.endswith("bias") else parameter + noise)
    return model
