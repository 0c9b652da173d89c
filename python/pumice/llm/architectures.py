# SPDX-License-Identifier: Apache-2.0
"""The decoders of transformers that are known to work: each has a test of its own."""

from __future__ import annotations

from typing import Any

from pumice.errors import require

# transformers' `model_type` by the name that people use.
KNOWN = {
    "Llama": "llama",
    "Qwen2": "qwen2",
    "Qwen3": "qwen3",
    "Gemma2": "gemma2",
    "Gemma3": "gemma3_text",
    "Phi3": "phi3",
    "Mistral": "mistral",
    "OLMo2": "olmo2",
    "Granite": "granite",
    "StableLM": "stablelm",
    "GPT2": "gpt2",
    "GPTNeoX": "gpt_neox",
    "Qwen3MoE": "qwen3_moe",
    "OLMoE": "olmoe",
    "Mixtral": "mixtral",
}


def check_architecture(model_type: str) -> None:
    """Raises InvalidInputError, with the nearest that is known, for a decoder without a test."""
    require(model_type, KNOWN.values(), f"architecture (known: {', '.join(KNOWN)}):")


def heads(config: Any) -> tuple[int, int, int]:
    """(heads of the queries, heads of keys and values, size of a head) of a transformers configuration."""
    count = config.num_attention_heads
    shared = getattr(config, "num_key_value_heads", None) or count
    return count, shared, getattr(config, "head_dim", None) or config.hidden_size // count
