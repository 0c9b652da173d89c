# SPDX-License-Identifier: Apache-2.0
"""Every known architecture: logits as eager's, for a prompt at once, token by token, and in random pieces. Small ones
on every run, two layers of the published widths by `./dev test-models`."""

from __future__ import annotations

import copy
import random

import pytest
import torch
from support.decoders import CASES, MAX_SEQ, VOCABULARY, WIDTHS, decoder
from support.roundings import roundings, row_error

import pumice
from pumice.llm.architectures import KNOWN
from pumice.llm.decoder import Decoder
from pumice.llm.methods import lower_methods, methods
from pumice.llm.open_source import open_source
from pumice.llm.skeleton import Quantization, skeleton

TOKENS = 24
MIXTURES = {"qwen3_moe", "olmoe", "mixtral"}


def load(model: torch.nn.Module, *names: str) -> pumice.Session:
    """A session with these methods alone: each is an export of its own."""
    source = open_source(model)
    made = skeleton(source.config, torch.float32, MAX_SEQ, source.weight, Quantization(None, None, None))
    weights = {f"model.{name}": read for name, read in made.weights.items()}
    module = Decoder(made.model, 1, MAX_SEQ, torch.float32).eval()
    chosen = [method for method in methods(1, MAX_SEQ) if method.name in names]
    return pumice.load(bytes(lower_methods(module, chosen, pumice.ExportOptions(weights=weights))))


def splits(count: int) -> list[list[int]]:
    """At once, one by one, and `count` random ways to cut TOKENS tokens."""
    draw = random.Random(0)
    random_ones = []
    for _ in range(count):
        cuts = sorted(draw.sample(range(1, TOKENS), draw.randint(1, 6)))
        random_ones.append([b - a for a, b in zip([0, *cuts], [*cuts, TOKENS], strict=True)])
    return [[TOKENS], [1] * TOKENS, *random_ones]


class Logits:
    """The logits [TOKENS, V] of a model in fp64, and a budget for the relative error of each row: three times what
    random roundings of every layer's result do to the worst row."""

    def __init__(self, model: torch.nn.Module, tokens: torch.Tensor) -> None:
        exact = copy.deepcopy(model).double()
        exact.config._experts_implementation = "eager"  # the others have no fp64
        self.want, off = roundings(exact, lambda exact: exact(tokens, use_cache=False).logits[0], 2.0**-24)
        self.most, self.worst = 3 * row_error(self.want + off, self.want), 0.0
        with torch.no_grad():
            other = exact(tokens.flip(1), use_cache=False).logits[0]
        assert row_error(other, self.want) > 1000 * self.most, "other tokens would nearly pass, too"

    def check(self, session: pumice.Session, tokens: torch.Tensor, parts: list[int]) -> None:
        """Logits for the tokens in parts of these sizes: all of them, or the last of each part."""
        first = 0
        for part in tokens.split(parts, 1):
            got, end = session(part, torch.tensor([first])), first + part.shape[1]
            rows = slice(first, end) if got.dim() == 3 else slice(end - 1, end)
            off = row_error(got.flatten(0, -2), self.want[rows])
            assert off <= self.most, f"parts {parts}, from {first} on: {off:.3g} of a row, {self.most:.3g} allowed"
            self.worst, first = max(self.worst, off), end


def test_every_known_architecture_has_a_case() -> None:
    assert sorted(CASES) == sorted(KNOWN.values())
    assert sorted(WIDTHS) == sorted(set(KNOWN.values()) - MIXTURES)


@pytest.mark.parametrize("name", CASES)
def test_logits_are_those_of_eager(name: str) -> None:
    model = decoder(name)
    tokens = torch.randint(0, VOCABULARY, (1, TOKENS), generator=torch.Generator().manual_seed(1))
    logits, session = Logits(model, tokens), load(model, "score")
    for parts in splits(10):
        logits.check(session, tokens, parts)


@pytest.mark.large
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("name", WIDTHS)
def test_published_widths(name: str) -> None:
    """The prompt by `prefill`, one token at a time by `decode`, and in 100 random ways in parts by `score`."""
    model = decoder(name, **WIDTHS[name])
    tokens = torch.randint(0, model.config.vocab_size, (1, TOKENS), generator=torch.Generator().manual_seed(1))
    logits, session = Logits(model, tokens), load(model, "prefill", "decode", "score")
    del model
    whole, single, *random_ones = splits(100)
    logits.check(session.method("prefill"), tokens, whole)
    logits.check(session.method("decode"), tokens, single)
    for parts in (whole, single, *random_ones):
        logits.check(session.method("score"), tokens, parts)
    print(f"{name}: relative error of the worst row {logits.worst:.3g}, {logits.most:.3g} allowed")
