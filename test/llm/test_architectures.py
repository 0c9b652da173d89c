# SPDX-License-Identifier: Apache-2.0
"""Every known architecture: logits as eager's, for a prompt at once, token by token, and in random pieces."""

from __future__ import annotations

import random

import pytest
import torch
from support.decoders import CASES, MAX_SEQ, VOCABULARY, decoder

import pumice
from pumice.llm.architectures import KNOWN
from pumice.llm.decoder import Decoder
from pumice.llm.methods import lower_methods, methods
from pumice.llm.open_source import open_source
from pumice.llm.skeleton import Quantization, skeleton

TOKENS = 24


def score_only(model: torch.nn.Module) -> pumice.Session:
    """A session with the method that gives the logits of all rows: one export instead of three."""
    source = open_source(model)
    made = skeleton(source.config, torch.float32, MAX_SEQ, source.weight, Quantization(None, None, None))
    weights = {f"model.{name}": read for name, read in made.weights.items()}
    module = Decoder(made.model, 1, MAX_SEQ, torch.float32).eval()
    score = [method for method in methods(1, MAX_SEQ) if method.name == "score"]
    return pumice.load(bytes(lower_methods(module, score, pumice.ExportOptions(weights=weights))))


def splits(count: int) -> list[list[int]]:
    """At once, one by one, and `count` random ways to cut TOKENS tokens."""
    draw = random.Random(0)
    random_ones = []
    for _ in range(count):
        cuts = sorted(draw.sample(range(1, TOKENS), draw.randint(1, 6)))
        random_ones.append([b - a for a, b in zip([0, *cuts], [*cuts, TOKENS], strict=True)])
    return [[TOKENS], [1] * TOKENS, *random_ones]


def test_every_known_architecture_has_a_case() -> None:
    assert sorted(CASES) == sorted(KNOWN.values())


@pytest.mark.parametrize("name", CASES)
def test_logits_are_those_of_eager(name: str) -> None:
    model = decoder(name)
    tokens = torch.randint(0, VOCABULARY, (1, TOKENS), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        want = model(tokens).logits[0]
    assert float(want.std()) > 0.05, "the logits are too flat to see a mistake"
    session = score_only(model)
    for parts in splits(6):
        first, got = 0, []
        for size in parts:
            part = tokens[:, first : first + size]
            got.append(session(part, torch.tensor([first]))[0])
            first += size
        torch.testing.assert_close(torch.cat(got), want, atol=2e-5 * float(want.abs().max()), rtol=0)
