# SPDX-License-Identifier: Apache-2.0
"""A .gguf file of llama.cpp: Llama, Mistral, Qwen2 and Qwen3.

Q4_0 and Q8_0 weights are taken over exactly, other quantized types are quantized anew, unless the caller asks for a
scheme: then all are. transformers reads the file.
"""

from __future__ import annotations

import re
import struct
from pathlib import Path
from typing import Any

import torch
from tokenizers.processors import TemplateProcessing
from torch import Tensor
from transformers import AutoConfig
from transformers.integrations.gguf.dequant import GGML_BLOCK, GGML_NAME, dequantize
from transformers.integrations.gguf.gguf_tokenizer_mapping import convert_gguf_tokenizer, get_gguf_tokenizer
from transformers.integrations.gguf.reader import GgufHeader, LazyGgufTensor, load_gguf_state_dict, read_gguf_metadata

from pumice.errors import require
from pumice.llm.source import Source, bad
from pumice.llm.texts import Texts
from pumice.llm.weight_forms import Integers, Scheme

ARCHITECTURES = ("llama", "qwen2", "qwen3")
_BLOCK = 32  # weights that share a scale in Q4_0 and Q8_0
_TOP = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}
_LAYER = {
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
_FACTORS = "rope_freqs.weight"
_SPECIAL = ("bos_token", "eos_token", "unk_token", "pad_token")


def open_gguf(path: Path) -> Source:
    """Everything but the weights, which are read when they are asked for. Raises InvalidInputError for a file that is
    cut, of another version or architecture, or has a tensor that nothing reads."""
    try:
        metadata, _ = read_gguf_metadata(str(path))
        kind = metadata["general.architecture"]
        require(str(kind), ARCHITECTURES, f"architecture of a .gguf file (known: {', '.join(ARCHITECTURES)}):")
        header = GgufHeader.from_file(str(path))
        _check_length(path, header)
        tensors = load_gguf_state_dict(header)
        texts = _texts(path, metadata)
        config = _config(metadata, kind, tensors)
    except (ValueError, KeyError, IndexError, TypeError, OverflowError, MemoryError, struct.error, OSError) as error:
        raise bad(f"{path} is no .gguf file that can be read, or it is cut: {error}", path, "IoError") from None
    factors = tensors.pop(_FACTORS, None)
    names = {_name(name): name for name in tensors}
    weights = _Weights(config if kind == "llama" else None, {ours: tensors[theirs] for ours, theirs in names.items()})
    frequencies = None if factors is None else _floats(factors)
    return Source(config, names, weights.read, weights.shape, texts, weights.stored, weights.kind, frequencies)


def _check_length(path: Path, header: GgufHeader) -> None:
    end = max((header.data_start + info.offset + info.nbytes for info in header.tensors), default=0)
    if (size := path.stat().st_size) < end:
        raise ValueError(f"its tensors end at byte {end}, the file has {size}")


def _name(theirs: str) -> str:
    stem, _, kind = theirs.rpartition(".")
    layer = re.fullmatch(r"blk\.(\d+)\.(\w+)", stem)
    ours = f"model.layers.{layer[1]}.{_LAYER[layer[2]]}" if layer and layer[2] in _LAYER else _TOP.get(stem)
    if ours is None or kind not in ("weight", "bias"):
        raise bad(f"the tensor '{theirs}' of a .gguf file is not known", theirs)
    return f"{ours}.{kind}"


def _config(metadata: dict[str, Any], kind: str, tensors: dict[str, LazyGgufTensor]) -> Any:
    def fact(name: str, default: Any = None) -> Any:
        value = metadata.get(f"{kind}.{name}", default)
        if value is None:
            raise bad(f"the .gguf file has no {kind}.{name}", name)
        return value

    if (scaling := metadata.get(f"{kind}.rope.scaling.type", "none")) != "none":
        raise bad(f"rotary embeddings scaled by '{scaling}' in a .gguf file are not supported", "rope.scaling.type")
    count = fact("attention.head_count")
    facts = {
        "num_hidden_layers": fact("block_count"),
        "hidden_size": fact("embedding_length"),
        "intermediate_size": fact("feed_forward_length"),
        "num_attention_heads": count,
        "num_key_value_heads": fact("attention.head_count_kv", count),
        "head_dim": fact("attention.key_length", fact("embedding_length") // count),
        "rms_norm_eps": fact("attention.layer_norm_rms_epsilon"),
        "max_position_embeddings": fact("context_length"),
        "vocab_size": tensors["token_embd.weight"].shape[0],
        "tie_word_embeddings": "output.weight" not in tensors,
        "rope_parameters": {"rope_type": "default", "rope_theta": fact("rope.freq_base", 10000.0)},
        "eos_token_id": metadata.get("tokenizer.ggml.eos_token_id"),
        "dtype": torch.float16,
    }
    if kind != "qwen2":
        facts["attention_bias"] = "blk.0.attn_q.bias" in tensors
    return AutoConfig.for_model(kind, **facts)


def _texts(path: Path, metadata: dict[str, Any]) -> Texts:
    architecture, vocabulary, settings = get_gguf_tokenizer(str(path))
    try:
        tokenizer, _ = convert_gguf_tokenizer(architecture, vocabulary)
    except Exception as error:  # tokenizers raises plain Exception
        raise bad(f"the tokenizer of {path}: {error}", path) from None
    special = {name: settings[name] for name in _SPECIAL if settings.get(name)}
    ends = ("tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id")
    eos = list(dict.fromkeys(int(metadata[name]) for name in ends if name in metadata))
    if settings.get("add_bos_token") and (bos := special.get("bos_token")):
        tokens = [(bos, int(metadata["tokenizer.ggml.bos_token_id"]))]
        tokenizer.post_processor = TemplateProcessing(single=f"{bos} $A", special_tokens=tokens)
    return Texts(tokenizer.to_str().encode(), settings.get("chat_template") or "", special, eos)


class _Weights:
    """The tensors by the names of transformers. llama: the configuration of an architecture whose queries and keys
    llama.cpp stores with the rows of each head in another order."""

    def __init__(self, llama: Any, tensors: dict[str, LazyGgufTensor]) -> None:
        self._llama, self._tensors = llama, tensors

    def shape(self, name: str) -> list[int]:
        """In elements."""
        tensor = self._tensors[name]
        elements, size = GGML_BLOCK.get(tensor.ggml_type, (1, 1))
        return [*tensor.shape[:-1], tensor.shape[-1] // size * elements]

    def read(self, name: str) -> Tensor:
        """As floats."""
        return self._rows(name, _floats(self._tensors[name]).reshape(self.shape(name)))

    def stored(self, name: str) -> Integers | Scheme | None:
        """Integers of Q4_0 and Q8_0; other quantized types become int8, since a second rounding to 4 bits costs a small
        model half of its quality: SmolLM2-135M in Q4_1 has perplexity 9.4 on a few sentences, then 16.3."""
        kind = self.kind(name)
        if kind == "Q4_0":
            return Integers(4, _BLOCK, True, lambda: tuple(self._rows(name, part) for part in q4_0(self._bytes(name))))
        if kind == "Q8_0":
            return Integers(8, _BLOCK, False, lambda: tuple(self._rows(name, part) for part in q8_0(self._bytes(name))))
        if kind is None:
            return None
        return Scheme("int8", _BLOCK)

    def kind(self, name: str) -> str | None:
        """llama.cpp's name of a quantized type."""
        return GGML_NAME.get(self._tensors[name].ggml_type)

    def _bytes(self, name: str) -> Tensor:
        return self._tensors[name][:]

    def _rows(self, name: str, tensor: Tensor) -> Tensor:
        """The rows of each head in transformers' order."""
        heads = {"q_proj": "num_attention_heads", "k_proj": "num_key_value_heads"}.get(name.split(".")[-2])
        if self._llama is None or heads is None:
            return tensor
        count = getattr(self._llama, heads)
        pairs = tensor.reshape(count, tensor.shape[0] // count // 2, 2, *tensor.shape[1:])
        return pairs.transpose(1, 2).reshape(tensor.shape)


def _floats(tensor: LazyGgufTensor) -> Tensor:
    data = tensor[:]
    return dequantize(data.flatten(), tensor.ggml_type) if tensor.ggml_type in GGML_NAME else data


def q4_0(data: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Rows of blocks (an f16 scale d, then 16 bytes: elements 0 to 15 in the low nibbles, 16 to 31 in the high ones)
    that mean (q - 8) * d, as integers, scales and zero points.

    Scales are not negative here: where d is, -(q - 8) * -d has integers up to 8, so they are one less, and the zero
    point is -1.
    """
    blocks = data.reshape(data.shape[0], -1, 18)
    d = blocks[..., :2].contiguous().view(torch.float16)
    q = torch.cat((blocks[..., 2:] & 15, blocks[..., 2:] >> 4), -1).to(torch.int8)
    negative = d < 0
    integers = torch.where(negative, 7 - q, q - 8)
    return integers.flatten(1), d.abs().squeeze(-1), -negative.squeeze(-1).to(torch.int8)


def q8_0(data: Tensor) -> tuple[Tensor, Tensor]:
    """Rows of blocks (an f16 scale, then 32 bytes) as integers and scales."""
    blocks = data.reshape(data.shape[0], -1, 34)
    scale = blocks[..., :2].contiguous().view(torch.float16).squeeze(-1)
    return blocks[..., 2:].contiguous().view(torch.int8).flatten(1), scale
