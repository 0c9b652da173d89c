# SPDX-License-Identifier: Apache-2.0
"""transformers' models of text, by the names of their families: each in a small size, with random weights."""

from __future__ import annotations

import transformers as t

from support.architectures.record import Made, Part, tokens, trained

# Numbers of a configuration that make it small, under all names that they have there.
_SIZES = {
    32: "hidden_size d_model dim n_embd emb_dim embedding_size",
    2: "num_hidden_layers n_layer n_layers num_layers num_key_value_heads num_experts_per_tok type_vocab_size",
    1: "encoder_layers decoder_layers num_encoder_layers num_decoder_layers",
    4: "num_attention_heads n_head n_heads num_heads encoder_attention_heads decoder_attention_heads "
    "num_local_experts num_experts n_routed_experts",
    64: "intermediate_size ffn_dim d_ff encoder_ffn_dim decoder_ffn_dim d_inner n_inner hidden_dim "
    "max_position_embeddings n_positions",
    8: "head_dim d_kv",
    16: "moe_intermediate_size",
    60: "vocab_size",
}
SMALL = {name: size for size, names in _SIZES.items() for name in names.split()} | {
    "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "use_cache": False,
}  # fmt: skip

FAMILIES = [
    "albert",
    "bart",
    "bert",
    "big_bird",
    "biogpt",
    "blenderbot",
    "bloom",
    "camembert",
    "canine",
    "convbert",
    "ctrl",
    "deberta",
    "deberta-v2",
    "electra",
    "ernie",
    "esm",
    "falcon",
    "flaubert",
    "fnet",
    "gemma",
    "gemma2",
    "gemma3_text",
    "glm",
    "gpt2",
    "gpt_bigcode",
    "gpt_neox",
    "gpt_oss",
    "granite",
    "granitemoe",
    "ibert",
    "jamba",
    "layoutlm",
    "lfm2",
    "llama",
    "luke",
    "m2m_100",
    "mamba",
    "marian",
    "mbart",
    "megatron-bert",
    "mistral",
    "mixtral",
    "mobilebert",
    "modernbert",
    "mpnet",
    "mpt",
    "mra",
    "mt5",
    "mvp",
    "nemotron",
    "nystromformer",
    "olmo",
    "olmo2",
    "olmoe",
    "openai-gpt",
    "opt",
    "pegasus",
    "pegasus_x",
    "persimmon",
    "phi",
    "phi3",
    "phimoe",
    "plbart",
    "qwen2",
    "qwen2_moe",
    "qwen3",
    "qwen3_moe",
    "qwen3_next",
    "recurrent_gemma",
    "rembert",
    "roberta",
    "roformer",
    "rwkv",
    "squeezebert",
    "stablelm",
    "starcoder2",
    "t5",
    "umt5",
    "xglm",
    "xlm",
    "xlstm",
    "yoso",
    "falcon_h1",
    "falcon_mamba",
    "minimax",
]
REFUSED = {
    "led": "decides by the value of a tensor",  # whether any token is global
    "longformer": "decides by the value of a tensor",
    "longt5": "could not capture",  # transformers makes no mask of its own while it is exported
    "switch_transformers": "could not capture",  # what its routers return is collected by hooks
}


def family(name: str) -> Made:
    """The model without a head, of 16 tokens; of two halves also of 5 tokens of the decoder."""
    default = t.CONFIG_MAPPING[name]()
    given = {key: value for key, value in SMALL.items() if hasattr(default, key)}
    try:
        config = type(default)(**given)
    except (AttributeError, TypeError, ValueError):  # its head_dim follows from others
        config = type(default)(**{key: value for key, value in given.items() if key != "head_dim"})
    model, ids = trained(t.AutoModel.from_config(config)), tokens(1, 16).clamp_min(3)
    if config.is_encoder_decoder:
        both = Part(model, lambda model, ids, first: model(input_ids=ids, decoder_input_ids=first)[0])
        return both, [(ids, ids[:, :5].contiguous())]
    return Part(model, lambda model, ids: model(input_ids=ids)[0]), [(ids,)]
