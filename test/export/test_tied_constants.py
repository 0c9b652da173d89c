# SPDX-License-Identifier: Apache-2.0
"""transformers' own wrapper of a model with a static cache, exported by torch.export's two ways."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM
from transformers.integrations.executorch import TorchExportableModuleWithStaticCache

import pumice
from pumice.passes.tied_constants import merge_tied_constants

SLOTS, VOCAB = 24, 61


def wrapped() -> nn.Module:
    torch.manual_seed(0)
    sizes = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 1, "vocab_size": VOCAB}
    model = LlamaForCausalLM(LlamaConfig(**sizes, num_attention_heads=4, num_key_value_heads=2)).eval()
    model.generation_config = GenerationConfig(use_cache=True, cache_implementation="static")
    return TorchExportableModuleWithStaticCache(model, 1, SLOTS, torch.device("cpu"))


@pytest.mark.parametrize("strict", [True, False])
def test_a_static_cache(strict) -> None:
    rows = torch.export.Dim("rows", min=1, max=SLOTS)
    example = {"input_ids": torch.zeros(1, 3, dtype=torch.int64), "cache_position": torch.arange(3)}
    dynamic = {"input_ids": {1: rows}, "cache_position": {0: rows}}
    with torch.no_grad():
        exported = torch.export.export(wrapped(), (), example, dynamic_shapes=dynamic, strict=strict)
    before = [spec.target for spec in exported.graph_signature.input_specs]
    program = pumice.export(exported)
    assert [spec.target for spec in exported.graph_signature.input_specs] == before  # of the caller: as it was
    session, module = pumice.load(bytes(program)), wrapped()
    generator, position = torch.Generator().manual_seed(1), 0
    for count in (4, 1, 1, 3):
        ids = torch.randint(0, VOCAB, (1, count), generator=generator)
        step = {"input_ids": ids, "cache_position": torch.arange(position, position + count)}
        with torch.no_grad():
            torch.testing.assert_close(session(**step), module(**step), atol=2e-6, rtol=2e-5)
        position += count


class Twice(nn.Module):
    """A buffer that a plain attribute holds, too, and a constant of equal numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("total", torch.zeros(4))
        self.held, self.equal = [self.total], [torch.zeros(4)]

    def forward(self, x):
        self.held[0].add_(x)
        return self.held[0] * 2 + self.equal[0]


def test_only_the_same_tensor_is_merged() -> None:
    exported = torch.export.export(Twice(), (torch.ones(4),))
    merged = merge_tied_constants(exported)
    kinds = [spec.kind.name for spec in merged.graph_signature.input_specs]
    assert kinds == ["BUFFER", "CONSTANT_TENSOR", "USER_INPUT"] and len(merged.constants) == 1
    assert merge_tied_constants(merged) is merged
    session = pumice.load(bytes(pumice.export(exported)))
    assert [session(torch.ones(4)).tolist() for _ in range(2)] == [[2.0] * 4, [4.0] * 4]
