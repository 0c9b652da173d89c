# SPDX-License-Identifier: Apache-2.0
"""Guesses from the text change how many tokens a call gives, never which."""

from __future__ import annotations

import pytest
from tiny_llama import MAX_SEQ

from pumice.llm.prompt_lookup import CHECKED, PromptLookup, accepted
from pumice.llm.sampling import Sampling

PROMPT = "| arena | one device buffer |\n| arena | one device"
DRAWN = {"temperature": 0.8, "seed": 3, "top_k": 40}
PENALIZED = {"temperature": 0.9, "seed": 5, "repeat_penalty": 1.2, "repeat_last": 5, "top_p": 0.9}


def test_what_followed_last_is_guessed() -> None:
    lookup = PromptLookup([1, 2, 3, 4, 5, 2, 3, 9, 1, 2])
    assert lookup.guess(3) == [3, 4, 5]  # after 1, 2
    lookup.add(3)
    assert lookup.guess(2) == [4, 5]  # after 1, 2, 3, not after the later 2, 3
    lookup.add(7)
    assert lookup.guess(4) == []
    for token in (2, 3):
        lookup.add(token)
    assert lookup.guess(9) == [7, 2, 3]  # after the last 2, 3; the text ends
    assert lookup.guess(0) == []
    assert PromptLookup([5]).guess(3) == PromptLookup().guess(3) == []


def test_wrong_guesses_end_what_is_accepted() -> None:
    assert accepted([4, 5, 6], [4, 5, 6, 7]) == [4, 5, 6, 7]
    assert accepted([4, 5, 6], [4, 8, 6, 7]) == [4, 8]
    assert accepted([4, 5, 6], [3, 5, 6, 7]) == [3]
    assert accepted([], [2]) == [2]


@pytest.mark.parametrize("options", [{}, DRAWN, PENALIZED], ids=["greedy", "drawn", "penalized"])
@pytest.mark.parametrize("scheme", ["none", "int4"])
def test_the_tokens_are_the_same(lm, scheme, options) -> None:
    """To the end of the context, where a check no longer fits."""
    model = lm(scheme)
    want = list(model.generate_tokens(PROMPT, max_new_tokens=MAX_SEQ, **options))
    assert model.guessed_tokens == 0
    for count in (1, 7):
        got = list(model.generate_tokens(PROMPT, max_new_tokens=MAX_SEQ, prompt_lookup_num_tokens=count, **options))
        assert got == want, f"{count} guesses"
    assert 0 < model.accepted_tokens < model.guessed_tokens


def test_in_a_file_of_several_rows(lm) -> None:
    many = lm("none", 4)
    want = list(lm("none").generate_tokens(PROMPT, max_new_tokens=40))
    assert list(many.generate_tokens(PROMPT, max_new_tokens=40, prompt_lookup_num_tokens=5)) == want


@pytest.mark.parametrize("how", [Sampling(), Sampling(**PENALIZED)], ids=["greedy", "penalized"])
def test_a_check_gives_what_steps_give(lm, how) -> None:
    model = lm("none")
    text = model.encode(PROMPT)
    model.read(text[:-1])
    want = model.generate_steps(text, 8, how)
    for right in range(8):  # guesses, then a wrong one
        wrong = [*want[:right], (want[right] + 1) % 256][:7]
        model.read(text[:-1])
        assert model.check(text, wrong, how) == want[: min(right, 7) + 1]
        assert model.held(0) == [*text, *want[: min(right, 7)]]


def walk(text: list[int], made: list[int]) -> tuple[int, int]:
    """Checks and right guesses on the way from `text` to `made`, whose first token came with the text's logits."""
    lookup, at, checks, right, steps = PromptLookup([*text, made[0]]), 1, 0, 0, 1
    while at < len(made):
        if guesses := lookup.guess(min(CHECKED, len(made) - at) - 1):
            came = accepted(guesses, made[at : at + len(guesses) + 1])
            checks, right = checks + 1, right + len(came) - 1
        else:
            came = made[at : at + steps]
        at, steps = at + len(came), CHECKED
        for token in came:
            lookup.add(token)
    return checks, right


def test_a_text_that_repeats_itself_takes_fewer_calls(lm, monkeypatch) -> None:
    """As many as its tokens say, which are those of the model that the tests train, whatever it has learned."""
    model = lm("none")
    tokens = model.encode("| arena | one device buffer |\n") * 4
    want = list(model.generate_tokens(tokens, max_new_tokens=100))
    checks, right = walk(tokens, want)
    calls = []
    call = model._call
    monkeypatch.setattr(model, "_call", lambda *all: calls.append(all[0]) or call(*all))
    got = list(model.generate_tokens(tokens, max_new_tokens=100, prompt_lookup_num_tokens=CHECKED - 1))
    assert got == want and calls.count("check") == checks > 0
    assert model.accepted_tokens == right > 0
