# SPDX-License-Identifier: Apache-2.0
"""Language models that pumice.llm does not build itself, and those of two halves."""

from __future__ import annotations

from collections.abc import Callable

import torch
import transformers as t
from torch import nn
from transformers.integrations.executorch import (
    Seq2SeqLMDecoderExportableModuleWithStaticCache,
    TorchExportableModuleWithStaticCache,
)

from support.architectures.record import Architecture, Made, Part, tokens, trained

SLOTS = 12  # of a static cache


def decoder_steps(model: nn.Module, heard: int) -> Made:
    """Of a model of two halves: tokens one by one, beside what the encoder has made of `heard` positions."""
    encoded = torch.randn(1, heard, 32)
    step = Seq2SeqLMDecoderExportableModuleWithStaticCache(model, SLOTS, 1)
    return step.eval(), [(tokens(1, 1), encoded, torch.tensor([position])) for position in range(3)]


def _t5() -> nn.Module:
    return trained(
        t.T5ForConditionalGeneration(t.T5Config(vocab_size=60, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4))
    )


def t5_encoder() -> Made:
    return Part(_t5().encoder, lambda encoder, ids: encoder(ids).last_hidden_state), [(tokens(2, 9),)]


def _opt() -> nn.Module:
    config = t.OPTConfig(
        vocab_size=60, hidden_size=32, num_hidden_layers=2, ffn_dim=64, num_attention_heads=4, word_embed_proj_dim=32,
        max_position_embeddings=32,
    )  # fmt: skip
    model = trained(t.OPTForCausalLM(config))
    cache = {"batch_size": 1, "max_cache_len": SLOTS}
    model.generation_config = t.GenerationConfig(use_cache=True, cache_implementation="static", cache_config=cache)
    return model


def opt_as_it_is() -> Made:
    step = TorchExportableModuleWithStaticCache(_opt(), batch_size=1, max_cache_len=SLOTS, device="cpu")
    return step, [(tokens(1, 1), None, torch.tensor([0]))]


class OptStep(nn.Module):
    """A token at a position. OPT reads off a mask where it is, and makes one of as many elements where it gets none."""

    def __init__(self) -> None:
        super().__init__()
        self.step = TorchExportableModuleWithStaticCache(_opt(), batch_size=1, max_cache_len=SLOTS, device="cpu")

    def forward(self, token: torch.Tensor, position: torch.Tensor) -> torch.Tensor:
        cache = self.step.static_cache
        for layer in cache.layers:
            layer.cumulative_length.copy_(position[0])
        seen = (torch.arange(SLOTS) <= position).long()[None]
        where = {"attention_mask": seen, "position_ids": position[None]}
        return self.step.model(token, past_key_values=cache, use_cache=True, **where).logits


def opt_step() -> Made:
    return OptStep().eval(), [(tokens(1, 1), torch.tensor([position])) for position in range(3)]


def _whole(model: nn.Module) -> Made:
    return Part(trained(model), lambda model, ids: model(ids, use_cache=False).logits), [(tokens(2, 7),)]


def mamba2() -> Made:
    config = t.Mamba2Config(
        vocab_size=60, hidden_size=32, state_size=8, num_hidden_layers=1, num_heads=4, head_dim=16, n_groups=1,
        chunk_size=4,
    )  # fmt: skip
    return _whole(t.Mamba2ForCausalLM(config))


def _mamba() -> nn.Module:
    return t.MambaForCausalLM(t.MambaConfig(vocab_size=60, hidden_size=32, state_size=8, num_hidden_layers=2))


class MambaStep(nn.Module):
    """A token, with the states of the layers, which are buffers, updated where they are."""

    def __init__(self) -> None:
        super().__init__()
        self.model = trained(_mamba())
        sizes = self.model.config
        for index in range(sizes.num_hidden_layers):
            self.register_buffer(f"seen_{index}", torch.zeros(1, sizes.intermediate_size, sizes.conv_kernel))
            self.register_buffer(f"state_{index}", torch.zeros(1, sizes.intermediate_size, sizes.state_size))

    def forward(self, token: torch.Tensor) -> torch.Tensor:
        cache = t.DynamicCache(config=self.model.config)
        for index, layer in enumerate(cache.layers):
            layer.conv_states[0], layer.recurrent_states[0] = (
                getattr(self, f"seen_{index}"), getattr(self, f"state_{index}")
            )  # fmt: skip
            layer.is_conv_states_initialized[0] = layer.is_recurrent_states_initialized[0] = True
            layer.has_previous_state[0], layer.conv_kernel_size[0] = True, layer.conv_states[0].shape[-1]
        return self.model(token, cache_params=cache, use_cache=True).logits


def qwen3_moe(experts: str) -> Callable[[], Made]:
    def make() -> Made:
        config = t.Qwen3MoeConfig(
            vocab_size=60, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
            num_key_value_heads=2, head_dim=8, moe_intermediate_size=16, num_experts=8, num_experts_per_tok=2,
        )  # fmt: skip
        model = t.Qwen3MoeForCausalLM(config)
        model.set_experts_implementation(experts)
        return _whole(model)

    return make


TEXT = (
    Architecture("T5", "encoder", t5_encoder),
    Architecture("T5", "decoder, a token at a time, static cache", lambda: decoder_steps(_t5(), heard=9)),
    Architecture("OPT", "prompt", lambda: _whole(_opt())),
    Architecture(
        "OPT", "a token at a time, static cache, as transformers exports it", opt_as_it_is,
        refused="decides by the value of a tensor",
        instead="it makes a mask of as many elements as there are tokens: give it `attention_mask` of the cache's "
        "length and `position_ids`, as the next row does",
    ),
    Architecture("OPT", "a token at a time, static cache, mask and position given", opt_step),
    Architecture("Mamba", "prompt", lambda: _whole(_mamba())),
    Architecture("Mamba", "a token at a time", lambda: (MambaStep().eval(), [(tokens(1, 1),) for _ in range(3)])),
    Architecture("Mamba 2", "prompt", mamba2),
    Architecture("Qwen3-MoE", "prompt, experts in a grouped product (the default)", qwen3_moe("grouped_mm")),
    Architecture("Qwen3-MoE", "prompt, experts in a batched product", qwen3_moe("batched_mm")),
    Architecture(
        "Qwen3-MoE", "prompt, experts in a loop", qwen3_moe("eager"),
        refused="decides by the value of a tensor",
        instead='the loop runs over the experts that were chosen: `model.set_experts_implementation("grouped_mm")`; '
        "quantized and with a cache, by `pumice llm export` ([llm.md](llm.md))",
    ),
)  # fmt: skip
