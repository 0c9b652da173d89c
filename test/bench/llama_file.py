# SPDX-License-Identifier: Apache-2.0
"""Writes a language model of Llama's shape with random weights, for measuring: a .pumice file in int4, or with --gguf
the same shape in Q4_0 for llama.cpp (pip install gguf). All layers have the same numbers, so that the file packs well.

python test/bench/llama_file.py out.pumice --size 1b
pumice-rt generate out.pumice --prompt-length 128 -n 225
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

import numpy as np

# Of Llama 3.2 1B (whose embedding is its head) and of Llama 3.1 8B.
SIZES = {
    "small": {"layers": 2, "hidden": 1024, "heads": 16, "kv_heads": 4, "wide": 4096, "vocabulary": 4096, "tied": True},
    "tiny": {"layers": 2, "hidden": 64, "heads": 4, "kv_heads": 2, "wide": 128, "vocabulary": 256, "tied": True},
    "1b": {"layers": 16, "hidden": 2048, "heads": 32, "kv_heads": 8, "wide": 8192, "vocabulary": 128256, "tied": True},
    "8b": {
        "layers": 32,
        "hidden": 4096,
        "heads": 32,
        "kv_heads": 8,
        "wide": 14336,
        "vocabulary": 128256,
        "tied": False,
    },
}
ROPE_THETA, EPS = 500000.0, 1e-5


def tensors(size: dict) -> dict[str, np.ndarray]:
    """Of one layer and of the rest, fp16, by the names of transformers."""
    random = np.random.default_rng(0)
    hidden, wide, head = size["hidden"], size["wide"], size["hidden"] // size["heads"]

    def matrix(rows: int, columns: int) -> np.ndarray:
        return (random.standard_normal((rows, columns), np.float32) / columns**0.5).astype(np.float16)

    layer = {
        "self_attn.q_proj": matrix(hidden, hidden),
        "self_attn.k_proj": matrix(size["kv_heads"] * head, hidden),
        "self_attn.v_proj": matrix(size["kv_heads"] * head, hidden),
        "self_attn.o_proj": matrix(hidden, hidden),
        "mlp.gate_proj": matrix(wide, hidden),
        "mlp.up_proj": matrix(wide, hidden),
        "mlp.down_proj": matrix(hidden, wide),
        "input_layernorm": np.ones(hidden, np.float16),
        "post_attention_layernorm": np.ones(hidden, np.float16),
    }
    every = {f"model.layers.{i}.{name}.weight": data for i in range(size["layers"]) for name, data in layer.items()}
    every["model.embed_tokens.weight"] = matrix(size["vocabulary"], hidden)
    every["model.norm.weight"] = np.ones(hidden, np.float16)
    if not size["tied"]:
        every["lm_head.weight"] = matrix(size["vocabulary"], hidden)
    return every


def write_pumice(out: str, size: dict, max_seq: int, **scheme: str | None) -> None:
    """`scheme`: quantize, embedding and dtype, as pumice.llm.export takes them."""
    from safetensors.numpy import save_file
    from tokenizers import Tokenizer, models

    import pumice.llm

    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": size["hidden"],
        "intermediate_size": size["wide"],
        "num_hidden_layers": size["layers"],
        "num_attention_heads": size["heads"],
        "num_key_value_heads": size["kv_heads"],
        "vocab_size": size["vocabulary"],
        "max_position_embeddings": 131072,
        "rms_norm_eps": EPS,
        "rope_theta": ROPE_THETA,
        "tie_word_embeddings": size["tied"],
        "torch_dtype": "float16",
    }
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "config.json").write_text(json.dumps(config))
        save_file(tensors(size), Path(folder) / "model.safetensors")
        words = Tokenizer(models.WordLevel({f"w{i}": i for i in range(size["vocabulary"])}, unk_token="w0"))
        words.save(str(Path(folder) / "tokenizer.json"))
        pumice.llm.export(folder, out, max_seq=max_seq, **scheme)


def write_gguf(out: str, size: dict) -> None:
    import gguf

    names = {
        "self_attn.q_proj": "attn_q",
        "self_attn.k_proj": "attn_k",
        "self_attn.v_proj": "attn_v",
        "self_attn.o_proj": "attn_output",
        "mlp.gate_proj": "ffn_gate",
        "mlp.up_proj": "ffn_up",
        "mlp.down_proj": "ffn_down",
        "input_layernorm": "attn_norm",
        "post_attention_layernorm": "ffn_norm",
    }
    rest = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}
    writer = gguf.GGUFWriter(out, "llama")
    writer.add_context_length(131072)
    writer.add_embedding_length(size["hidden"])
    writer.add_block_count(size["layers"])
    writer.add_feed_forward_length(size["wide"])
    writer.add_head_count(size["heads"])
    writer.add_head_count_kv(size["kv_heads"])
    writer.add_layer_norm_rms_eps(EPS)
    writer.add_rope_freq_base(ROPE_THETA)
    writer.add_vocab_size(size["vocabulary"])
    writer.add_tokenizer_model("none")
    for name, data in tensors(size).items():
        words = name.removesuffix(".weight").split(".")
        new = f"blk.{words[2]}.{names['.'.join(words[3:])]}" if words[1] == "layers" else rest[".".join(words)]
        if data.ndim == 1:
            writer.add_tensor(f"{new}.weight", data.astype(np.float32))
        else:
            kind = gguf.GGMLQuantizationType.Q4_0
            writer.add_tensor(f"{new}.weight", gguf.quants.quantize(data.astype(np.float32), kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    parser.add_argument("--size", choices=SIZES, default="1b")
    parser.add_argument("--max-seq", type=int, default=4352, help="tokens that fit, prompt and answer")
    parser.add_argument("--quantize", choices=["none", "int4", "int8", "8da4w"], default="int4")
    parser.add_argument("--dtype", choices=["f32", "f16"], default="f16", help="of floats")
    parser.add_argument("--gguf", action="store_true", help="for llama.cpp")
    given = parser.parse_args()
    if given.gguf:
        write_gguf(given.out, SIZES[given.size])
    else:
        embedding = "int4" if given.quantize == "int4" else None
        scheme = {"quantize": given.quantize, "dtype": given.dtype, "embedding": embedding}
        write_pumice(given.out, SIZES[given.size], given.max_seq, **scheme)


if __name__ == "__main__":
    main()
