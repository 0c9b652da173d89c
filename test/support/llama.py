# SPDX-License-Identifier: Apache-2.0
"""A small model of ExecuTorch's own Llama with random weights, and a tokenizer of ASCII, as files for its exporter."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

BOS, EOS, VOCAB, SLOTS = 0, 1, 128, 48
PARAMS = {
    "dim": 64, "n_layers": 2, "n_heads": 4, "n_kv_heads": 2, "hidden_dim": 128, "vocab_size": VOCAB, "norm_eps": 1e-5,
    "rope_theta": 10000.0,
}  # fmt: skip
TEXT = ["the quick brown fox jumps over the lazy dog", "a model reads the words that it has written before"]


def write(folder: Path, **changes: Any) -> dict[str, Any]:
    """Files params.json, model.pt and tokenizer.json; the configuration for them, without backend and quantization."""
    from executorch.examples.models.llama.llama_transformer import construct_transformer
    from executorch.examples.models.llama.model_args import ModelArgs

    params = PARAMS | changes
    (folder / "params.json").write_text(json.dumps(params))
    model = construct_transformer(ModelArgs(max_seq_len=SLOTS, max_context_len=SLOTS, **params))
    generator = torch.Generator().manual_seed(0)
    weights = {name: value.detach() for name, value in model.named_parameters()}
    for value in weights.values():
        if value.dim() == 2:
            value.normal_(0, 0.3, generator=generator)
    torch.save(weights, folder / "model.pt")
    ascii_only = sorted(c for c in pre_tokenizers.ByteLevel.alphabet() if c.isascii()) + ["\u0120"]  # the last: a space
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    special = ["<s>", "</s>"]
    tokenizer.train_from_iterator(
        TEXT, trainers.BpeTrainer(vocab_size=VOCAB, initial_alphabet=ascii_only, special_tokens=special)
    )
    assert tokenizer.get_vocab_size() == VOCAB
    tokenizer.save(str(folder / "tokenizer.json"))
    eos = json.dumps({"get_bos_id": BOS, "get_eos_ids": [EOS]})
    return {
        "base": {"params": f"{folder}/params.json", "checkpoint": f"{folder}/model.pt", "metadata": eos},
        "model": {"use_kv_cache": True, "use_sdpa_with_kv_cache": True},
        "export": {"max_seq_length": SLOTS, "max_context_length": SLOTS, "output_dir": str(folder)},
    }


def eager(config: dict[str, Any]) -> torch.nn.Module:
    """The module that ExecuTorch exports for a configuration; its caches move on with each call."""
    from executorch.examples.models.llama import export_llama_lib
    from executorch.extension.llm.export.config.llm_config import LlmConfig
    from omegaconf import OmegaConf

    given = {name: value for name, value in config.items() if name != "backend"}
    known = OmegaConf.to_object(OmegaConf.merge(OmegaConf.structured(LlmConfig), given))
    return export_llama_lib._prepare_for_llama_export(known).model.eval()
