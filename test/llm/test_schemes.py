# SPDX-License-Identifier: Apache-2.0
"""Every quantization, and f16: logits as the eager model's of that scheme; sequences of a batch at own positions."""

from __future__ import annotations

import copy

import pytest
import torch
from support.decoders import MAX_SEQ, VOCABULARY, decoder

import pumice
from pumice.llm import export_model
from pumice.llm.methods import methods

TOKENS = torch.randint(0, VOCABULARY, (2, 20), generator=torch.Generator().manual_seed(2))


@pytest.fixture
def score(monkeypatch, tmp_path):
    """Exports with the method `score` alone; gives a session."""
    score = lambda batch, max_seq: [m for m in methods(batch, max_seq) if m.name == "score"]  # noqa: E731
    monkeypatch.setattr(export_model, "methods", score)

    def made(model: torch.nn.Module, **options) -> pumice.Session:
        pumice.llm.export(model, tmp_path / "m.pumice", max_seq=MAX_SEQ, **options)
        return pumice.load(tmp_path / "m.pumice")

    return made


def quantized(model: torch.nn.Module, linear: str, embedding: str) -> torch.nn.Module:
    """Head and embedding are two matrices here; the embedding is quantized as a layer of its shape would be."""
    made = copy.deepcopy(model)
    table = torch.nn.Linear(*made.model.embed_tokens.weight.shape[::-1], bias=False)
    table.weight = torch.nn.Parameter(made.model.embed_tokens.weight.detach().clone(), False)
    made.model.embed_tokens.weight = torch.nn.Parameter(pumice.quantize(table, embedding).weight.dequantize(), False)
    return pumice.quantize(made, linear)


def error(got: torch.Tensor, want: torch.Tensor) -> float:
    return float((got.float() - want).square().mean().sqrt() / want.std())


@pytest.mark.parametrize(
    ("linear", "embedding", "most"), [("int4", "int8", 1e-5), ("int8", "int4", 1e-5), ("8da4w", "int4", 0.005)]
)
def test_the_logits_are_those_of_eager(score, linear, embedding, most) -> None:
    """8da4w rounds activations, where a last bit may tip; it must be far nearer to its own scheme than to int4's."""
    model = decoder("qwen3")
    got = score(model, quantize=linear, embedding=embedding)(TOKENS[:1], torch.tensor([0]))
    with torch.no_grad():
        want = quantized(model, linear, embedding)(TOKENS[:1]).logits
        other = quantized(model, "int4" if linear != "int4" else "int8", embedding)(TOKENS[:1]).logits
    assert error(got, want) < most, error(got, want)
    assert error(other, want) > 2 * most


def test_f16_is_near_and_sequences_have_own_positions(score) -> None:
    model = decoder("llama")
    with torch.no_grad():
        want = model(TOKENS).logits
    session = score(model, dtype="f16", batch=2)
    assert error(session(TOKENS, torch.tensor([0, 0])), want) < 0.01
    ahead = torch.stack((TOKENS[0, 12:16], TOKENS[1, 4:8]))
    got = session(ahead, torch.tensor([12, 4]))
    assert error(got, torch.stack((want[0, 12:16], want[1, 4:8]))) < 0.01
