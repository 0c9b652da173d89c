# SPDX-License-Identifier: Apache-2.0
"""Caches of int8: a model's logits are those of eager PyTorch whose keys and values are rounded in the same way."""

from __future__ import annotations

import copy
import functools

import numpy as np
import pytest
import torch
from tiny_llama import MAX_SEQ
from transformers import DynamicCache

import pumice
from pumice.llm.sampling import Sampling

PROMPT = "| arena | one device buffer |\n| arena | one device"
TOLERANCE = 2e-5  # of the largest logit: sums in another order
TIE = 2e-5  # steps: what such sums make, 2^-23 of a row, times 127; this near to a tie either integer is right


class RoundedCache(DynamicCache):
    """Keys and values as the file keeps them: each row of a head in steps of its largest element / 127."""

    def __init__(self, bias: float = 0) -> None:
        super().__init__()
        self.bias = bias

    def update(self, key_states, value_states, *args, **kwargs):
        return super().update(self.rounded(key_states), self.rounded(value_states), *args, **kwargs)

    def rounded(self, x: torch.Tensor) -> torch.Tensor:
        step = x.abs().amax(-1, keepdim=True) / 127
        return torch.where(step > 0, (x / step + self.bias).round() * step, 0)


@pytest.fixture(scope="module")
def int8(tiny, tmp_path_factory):
    folder = tmp_path_factory.mktemp("int8")

    @functools.cache
    def made(batch: int = 1, scheme: str = "none", dtype: str = "f32") -> pumice.llm.LanguageModel:
        path = folder / f"{batch}-{scheme}-{dtype}.pumice"
        pumice.llm.export(tiny, path, cache="int8", batch=batch, quantize=scheme, dtype=dtype)
        return pumice.llm.load(path)

    return made


@pytest.fixture(scope="module")
def one_layer(tiny, eager, tmp_path_factory):
    """A model and its file. Of one layer: an integer that falls the other way at a tie
    moves 1 % of those of the layers after it."""
    path = tmp_path_factory.mktemp("one") / "one.pumice"
    model = copy.deepcopy(eager("none"))
    model.model.layers = model.model.layers[:1]
    model.config.num_hidden_layers = 1
    model.config.layer_types = None
    pumice.llm.export(model, path, cache="int8", tokenizer=tiny)
    return model, pumice.llm.load(path)


def logits(model, tokens: list[int], cache) -> np.ndarray:
    with torch.no_grad():
        return model(torch.tensor([tokens]), past_key_values=cache, use_cache=True).logits[0].numpy()


def check(got: np.ndarray, model, tokens: list[int], rows: list[int]) -> None:
    """`got`: logits after the tokens `rows`. Beside the tolerance they may be off by what integers near a tie make."""
    want, up, down = (logits(model, tokens, RoundedCache(bias))[rows] for bias in (0, TIE, -TIE))
    limit = TOLERANCE * np.abs(want).max() + np.abs(up - want).max() + np.abs(down - want).max()
    floats = logits(model, tokens, DynamicCache())[rows]
    assert np.abs(want - floats).max() > 5 * limit, "the rounding is too small to see that it is missing"
    assert np.abs(got - want).max() <= limit


def test_one_token_at_a_time(one_layer) -> None:
    model, lm = one_layer
    tokens = lm.encode(PROMPT * 3)
    lm.reset()
    got = np.stack([lm.read(tokens[:1]), *(lm.step(token) for token in tokens[1:])])
    check(got, model, tokens, list(range(len(tokens))))


@pytest.mark.parametrize("seed", range(3))
def test_in_random_chunks(one_layer, seed) -> None:
    model, lm = one_layer
    tokens = lm.encode(PROMPT * 3)
    lm.reset()
    random = np.random.default_rng(seed)
    got, rows, known = [], [], 0
    while known < len(tokens):
        count = min(int(random.integers(1, 40)), len(tokens) - known)
        got.append(lm._run("prefill", tokens[known : known + count]))
        known += count
        rows.append(known - 1)
    check(np.stack(got), model, tokens, rows)


def test_all_logits_at_once(one_layer) -> None:
    model, lm = one_layer
    tokens = lm.encode(PROMPT * 3)
    check(lm.score(tokens), model, tokens, list(range(len(tokens))))


def test_greedy_tokens_are_those_of_eager(int8, eager) -> None:
    lm = int8()
    prompt = lm.encode(PROMPT)
    lm.eos, kept = frozenset(), lm.eos
    try:
        got = list(lm.generate_tokens(prompt, max_new_tokens=128))
    finally:
        lm.eos = kept
    tokens, cache, want = torch.tensor([prompt]), RoundedCache(), []
    for _ in range(128):
        with torch.no_grad():
            tokens = eager("none")(tokens, past_key_values=cache, use_cache=True).logits[:, -1:].argmax(-1)
        want.append(int(tokens))
    assert got == want


def test_a_reset_leaves_nothing(int8) -> None:
    lm = int8()
    first = lm.score(lm.encode(PROMPT))
    lm.session.reset()
    lm.reset()
    assert np.array_equal(lm.score(lm.encode(PROMPT)), first)


def test_rows_of_a_batch_and_their_copies(int8) -> None:
    one, many = int8(), int8(3)
    prompts = [PROMPT, "A value", PROMPT + " buffer for all"]
    want = [list(one.generate_tokens(prompt, max_new_tokens=24)) for prompt in prompts]
    got: list[list[int]] = [[], [], []]
    for index, token in many.stream_batch_tokens(prompts, max_new_tokens=24):
        got[index].append(token)
    assert got == want
    many.reset()
    text, other = many.encode(PROMPT), many.encode("A value that is another one")
    many.read_rows({0: text[:-1], 1: other[:-1]})
    many.copy_rows({1: 0, 2: 1})
    drawn = many.step_rows({0: (text, Sampling()), 1: (text, Sampling()), 2: (other, Sampling())}, 16)
    assert drawn[0] == drawn[1] == list(one.generate_tokens(text, max_new_tokens=16))
    assert drawn[2] == list(one.generate_tokens(other, max_new_tokens=16)) != drawn[0]


def test_guesses_do_not_change_the_tokens(int8) -> None:
    lm = int8()
    want = list(lm.generate_tokens(PROMPT, max_new_tokens=MAX_SEQ))
    assert list(lm.generate_tokens(PROMPT, max_new_tokens=MAX_SEQ, prompt_lookup_num_tokens=7)) == want
    assert lm.accepted_tokens > 0


def test_the_caches_have_half_the_bytes(int8, tiny, tmp_path) -> None:
    """Of f16: a byte an element, and 4 bytes for each row of a head."""
    path = tmp_path / "f16.pumice"
    pumice.llm.export(tiny, path, dtype="f16")
    half, byte = (lm.session.memory["state"] for lm in (pumice.llm.load(path), int8(dtype="f16")))
    rows = 2 * 2 * 2 * MAX_SEQ  # layers, keys and values, heads
    assert half - byte == 2 * rows * 32 - (rows * 32 + rows * 4)
