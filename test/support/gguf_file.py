# SPDX-License-Identifier: Apache-2.0
"""Writes a .gguf file (version 3) of a Llama as llama.cpp's converter does, with the types of its tensors chosen."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import torch

TYPES = {"F32": 0, "F16": 1, "Q4_0": 2, "Q4_1": 3, "Q8_0": 8}
_ALIGNMENT = 32


def text(value: str) -> bytes:
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def metadata(value: Any) -> bytes:
    """A value with its type in front."""
    if isinstance(value, str):
        return struct.pack("<I", 8) + text(value)
    if isinstance(value, bool):
        return struct.pack("<IB", 7, value)
    if isinstance(value, float):
        return struct.pack("<If", 6, value)
    if isinstance(value, int):
        return struct.pack("<II", 4, value)
    kind = 5 if value and isinstance(value[0], int) else 8
    items = b"".join(text(item) if kind == 8 else struct.pack("<i", item) for item in value)
    return struct.pack("<IIQ", 9, kind, len(value)) + items


def q4_0(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """llama.cpp's rounding: (bytes, the values that they mean). The largest weight is -8: scales may be negative."""
    blocks = x.reshape(-1, 32).astype(np.float32)
    largest = np.take_along_axis(blocks, np.abs(blocks).argmax(1)[:, None], 1)
    d = (largest / -8).astype(np.float16)
    inverse = np.divide(1.0, d.astype(np.float32), out=np.zeros(d.shape, np.float32), where=d != 0)
    q = np.clip(np.floor(blocks * inverse + 8.5), 0, 15).astype(np.uint8)
    data = np.concatenate([d.view(np.uint8).reshape(-1, 2), q[:, :16] | (q[:, 16:] << 4)], 1)
    return data, ((q.astype(np.float32) - 8) * d.astype(np.float32)).reshape(x.shape)


def q4_1(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A step and a least weight for each block."""
    blocks = x.reshape(-1, 32).astype(np.float32)
    low = blocks.min(1, keepdims=True).astype(np.float16)
    step = ((blocks.max(1, keepdims=True) - low) / 15).astype(np.float16)
    inverse = np.divide(1.0, step.astype(np.float32), out=np.zeros(step.shape, np.float32), where=step != 0)
    q = np.clip(np.round((blocks - low) * inverse), 0, 15).astype(np.uint8)
    data = np.concatenate(
        [*(part.view(np.uint8).reshape(-1, 2) for part in (step, low)), q[:, :16] | (q[:, 16:] << 4)], 1
    )
    return data, (q * step.astype(np.float32) + low.astype(np.float32)).reshape(x.shape)


def q8_0(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    blocks = x.reshape(-1, 32).astype(np.float32)
    d = (np.abs(blocks).max(1, keepdims=True) / 127).astype(np.float16)
    inverse = np.divide(1.0, d.astype(np.float32), out=np.zeros(d.shape, np.float32), where=d != 0)
    q = np.clip(np.round(blocks * inverse), -127, 127).astype(np.int8)
    data = np.concatenate([d.view(np.uint8).reshape(-1, 2), q.view(np.uint8)], 1)
    return data, (q.astype(np.float32) * d.astype(np.float32)).reshape(x.shape)


def encode(x: np.ndarray, kind: str) -> tuple[bytes, np.ndarray]:
    """The bytes of a tensor, and what they mean."""
    if kind in ("Q4_0", "Q4_1", "Q8_0"):
        data, meant = {"Q4_0": q4_0, "Q4_1": q4_1, "Q8_0": q8_0}[kind](x)
        return data.tobytes(), meant
    stored = x.astype(np.float16 if kind == "F16" else np.float32)
    return stored.tobytes(), stored.astype(np.float32)


def names(layers: int) -> dict[str, str]:
    """llama.cpp's names by those of transformers."""
    gguf_names = {"model.embed_tokens.weight": "token_embd.weight", "model.norm.weight": "output_norm.weight"}
    parts = {
        "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm", "self_attn.q_proj": "attn_q",
        "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output",
        "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down",
    }  # fmt: skip
    for layer in range(layers):
        gguf_names |= {f"model.layers.{layer}.{a}.weight": f"blk.{layer}.{b}.weight" for a, b in parts.items()}
    return gguf_names


def permuted(x: np.ndarray, heads: int) -> np.ndarray:
    """Rows of a head as llama.cpp stores them."""
    return x.reshape(heads, 2, x.shape[0] // heads // 2, *x.shape[1:]).swapaxes(1, 2).reshape(x.shape)


def write(path: Path, model: torch.nn.Module, kind: str, tokens: list[str], **changed: Any) -> torch.nn.Module:
    """Matrices become `kind`, norms F32. Changes `model` (a tied Llama) to what the file means, and returns it."""
    config = model.config
    facts: dict[str, Any] = {
        "general.architecture": "llama",
        "llama.block_count": config.num_hidden_layers,
        "llama.embedding_length": config.hidden_size,
        "llama.feed_forward_length": config.intermediate_size,
        "llama.attention.head_count": config.num_attention_heads,
        "llama.attention.head_count_kv": config.num_key_value_heads,
        "llama.attention.key_length": config.head_dim,
        "llama.attention.layer_norm_rms_epsilon": float(config.rms_norm_eps),
        "llama.context_length": config.max_position_embeddings,
        "llama.rope.freq_base": 10000.0,
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": [1] * 256 + [3] * (len(tokens) - 256),
        "tokenizer.ggml.merges": [],
        "tokenizer.ggml.eos_token_id": 256,
        **changed,
    }
    table, data, state = b"", b"", model.state_dict()
    for ours, theirs in names(config.num_hidden_layers).items():
        x = state[ours].numpy()
        heads = {"q_proj": config.num_attention_heads, "k_proj": config.num_key_value_heads}.get(ours.split(".")[-2])
        stored, meant = encode(permuted(x, heads) if heads else x, kind if x.ndim == 2 else "F32")
        encode_plain = encode(x, kind if x.ndim == 2 else "F32")[1]
        assert heads or np.array_equal(meant, encode_plain)
        state[ours].copy_(torch.from_numpy(encode_plain))
        dims = struct.pack(f"<I{x.ndim}Q", x.ndim, *x.shape[::-1])
        table += text(theirs) + dims + struct.pack("<IQ", TYPES[kind if x.ndim == 2 else "F32"], len(data))
        data += stored + bytes(-len(stored) % _ALIGNMENT)
    head = b"GGUF" + struct.pack("<IQQ", 3, len(names(config.num_hidden_layers)), len(facts))
    head += b"".join(text(key) + metadata(value) for key, value in facts.items()) + table
    path.write_bytes(head + bytes(-len(head) % _ALIGNMENT) + data)
    return model
