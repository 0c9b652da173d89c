# SPDX-License-Identifier: Apache-2.0
"""A trained model from its folder to text: greedy tokens are those of eager PyTorch, and what a user may ask for."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import torch
from tiny_llama import MAX_SEQ, SPECIAL, byte_tokenizer

import pumice

PROMPT = "| arena | one device buffer"
STEPS = 256


def greedy(model, prompt: list[int], steps: int) -> list[int]:
    """Eager's tokens; a token that ends the text does not end them."""
    tokens, past = torch.tensor([prompt]), None
    made = []
    for _ in range(steps):
        with torch.no_grad():
            out = model(tokens, past_key_values=past, use_cache=True)
        past, tokens = out.past_key_values, out.logits[:, -1:].argmax(-1)
        made.append(int(tokens))
    return made


@pytest.mark.parametrize("scheme", ["none", "int4"])
def test_greedy_tokens_are_those_of_eager(lm, eager, scheme) -> None:
    model = lm(scheme)
    prompt = model.encode(PROMPT)
    model.eos, kept = frozenset(), model.eos
    try:
        got = list(model.generate_tokens(prompt, max_new_tokens=STEPS))
    finally:
        model.eos = kept
    assert got == greedy(eager(scheme), prompt, STEPS)
    assert len(set(got)) > 12, "too few different tokens to see a mistake"
    assert model.tokens_per_second > 0


def test_the_loss_is_that_of_eager(lm, eager) -> None:
    tokens = lm("int4").encode(PROMPT * 4)
    got = lm("int4").score(tokens)
    with torch.no_grad():
        want = eager("int4")(torch.tensor([tokens])).logits[0]
    torch.testing.assert_close(torch.from_numpy(got), want, atol=1e-4 * float(want.abs().max()), rtol=0)


def test_head_and_embedding_are_stored_once(file) -> None:
    constants = pumice.inspect(file("int4"))["constants"]
    whole = [c for c in constants if c["bytes"] == 264 * 96 // 2]
    assert len(whole) == 1, [c["key"] for c in constants]
    keys = [c["key"] for c in constants]
    assert len(keys) == len(set(keys)) and {"llm/tokenizer.json", "llm/facts.json"} <= set(keys)


def test_a_common_beginning_is_not_read_again(lm) -> None:
    model = lm("none")
    model.reset()
    whole = model.read(model.encode(PROMPT + " for all"))
    rows = []
    run = model._run
    model._run = lambda method, tokens: rows.append(len(tokens)) or run(method, tokens)
    try:
        model.read(model.encode(PROMPT + " for one"))
        again = model.read(model.encode(PROMPT + " for all"))
    finally:
        del model._run
    assert rows == [3, 3]
    np.testing.assert_allclose(again, whole, atol=2e-5)


def test_two_texts_in_turn_do_not_mix(lm) -> None:
    model = lm("none")
    alone = [list(model.generate_tokens(prompt, max_new_tokens=6)) for prompt in ("| word", "A value")]
    pairs = zip(*(model.generate_tokens(prompt, max_new_tokens=6) for prompt in ("| word", "A value")), strict=True)
    assert [list(text) for text in zip(*pairs, strict=True)] == alone


def test_a_seed_repeats_a_text_and_another_gives_another(lm) -> None:
    model = lm("int4")
    texts = ["".join(model.generate("The ", max_new_tokens=40, temperature=1.0, seed=seed)) for seed in (1, 1, 2)]
    assert texts[0] == texts[1] != texts[2]


SAMPLED = [
    {"temperature": 0.9, "seed": 1},
    {"temperature": 1.1, "top_k": 40, "top_p": 0.9, "repeat_penalty": 1.2, "seed": 2},
    {"temperature": 0.8, "top_p": 0.95, "min_p": 0.02, "repeat_penalty": 1.1, "repeat_last": 300, "seed": 2**63 + 7},
    {"temperature": 0.0, "repeat_penalty": 1.3},
]


@pytest.mark.parametrize("features", [None, "none"])
@pytest.mark.parametrize("options", SAMPLED, ids=lambda options: "-".join(options))
def test_the_device_draws_the_tokens_of_the_host(lm, file, options, features) -> None:
    model = lm("int4") if features is None else pumice.llm.load(file("int4"), features=features)
    prompt, steps = model.encode(PROMPT), 256
    kept = model.eos, dict(model._methods)
    model.eos = frozenset()
    try:
        got = list(model.generate_tokens(prompt, max_new_tokens=steps, **options))
        model._methods.pop("sample")  # as files of before have it
        want = list(model.generate_tokens(prompt, max_new_tokens=steps, **options))
    finally:
        model.eos, model._methods = kept
    assert got == want and len(got) == steps
    assert len(set(got)) > 12, "too few different tokens to see a mistake"


def test_a_token_that_ends_a_drawn_text_ends_it(lm) -> None:
    model, options = lm("int4"), {"max_new_tokens": 30, "temperature": 1.0, "seed": 3}
    tokens = list(model.generate_tokens(PROMPT, **options))
    model.eos, kept = frozenset([tokens[17]]), model.eos
    try:
        got = list(model.generate_tokens(PROMPT, **options))
        again = list(model.generate_tokens(PROMPT + "s", **options))  # what was drawn too far is forgotten
    finally:
        model.eos = kept
    assert got == tokens[: tokens.index(tokens[17]) + 1]
    model.reset()
    fresh = list(model.generate_tokens(PROMPT + "s", **options))
    assert fresh[: len(again)] == again


def test_a_stop_string_ends_the_text_before_it(lm) -> None:
    model = lm("none")
    text = "".join(model.generate(PROMPT, max_new_tokens=60))
    stop = text[20:24]
    assert "".join(model.generate(PROMPT, max_new_tokens=60, stop=[stop])) == text[: text.index(stop)]


def test_the_end_token_ends_a_text(lm) -> None:
    model = lm("none")
    tokens = list(model.generate_tokens(PROMPT, max_new_tokens=10))
    model.eos, kept = frozenset([tokens[4]]), model.eos
    try:
        got = list(model.generate_tokens(PROMPT, max_new_tokens=10))
    finally:
        model.eos = kept
    assert got == tokens[: tokens.index(tokens[4]) + 1]


def test_the_context_ends_a_text(lm) -> None:
    model = lm("none")
    model.eos, kept = frozenset(), model.eos
    try:
        assert len(list(model.generate_tokens([65] * (MAX_SEQ - 3), max_new_tokens=100))) == 3
    finally:
        model.eos = kept


def test_a_chat_is_written_by_the_template(lm) -> None:
    model = lm("none")
    messages = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yes"}]
    text = f"{SPECIAL[1]}Hi{SPECIAL[0]}{SPECIAL[2]}Yes{SPECIAL[0]}{SPECIAL[2]}"
    assert model.chat_tokens(messages) == byte_tokenizer().encode(text).ids
    assert "".join(model.chat(messages, max_new_tokens=5))


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda m: m.generate("x" * MAX_SEQ), f"{MAX_SEQ} tokens, and {MAX_SEQ} fit"),
        (lambda m: m.generate(""), "no tokens"),
        (lambda m: m.generate([9999]), "token 9999 is not in the vocabulary of 264"),
        (lambda m: m.generate([-1]), "token -1"),
        (lambda m: m.generate("a", max_new_tokens=0), "positive integer, got 0"),
        (lambda m: m.generate("a", stop=[""]), "stop string is empty"),
        (lambda m: m.generate("a", temperature=-1.0), "temperature is -1.0"),
        (lambda m: m.generate("a", top_p=0.0), "top_p is 0.0"),
        (lambda m: m.generate("a", warmth=1), "unknown option 'warmth'"),
        (lambda m: m.chat([]), "conversation is empty"),
        (lambda m: m.chat([{"role": "user"}]), "message 0 needs"),
    ],
)
def test_bad_arguments_are_refused_before_anything_runs(lm, call, match) -> None:
    model = lm("none")
    before = list(model._known)
    with pytest.raises(pumice.InvalidInputError, match=match):
        call(model)
    assert model._known == before


def test_a_file_of_another_kind_is_refused(tmp_path) -> None:
    pumice.export(torch.nn.Linear(4, 4), (torch.zeros(1, 4),)).save(tmp_path / "m.pumice")
    with pytest.raises(pumice.InvalidFileError, match="holds no language model"):
        pumice.llm.load(tmp_path / "m.pumice")


def test_torch_is_not_imported(file) -> None:
    script = (
        "import sys, pumice, pumice.llm\n"
        f"lm = pumice.llm.load({str(file('int4'))!r})\n"
        "text = ''.join(lm.generate('The ', max_new_tokens=3))\n"
        "print('torch' in sys.modules, 'transformers' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


def test_an_interrupted_run_leaves_the_model_usable(lm, monkeypatch) -> None:
    """Ctrl-C in a run that updates more than 1 MiB of caches: as then, the session refuses runs until it is reset."""
    model = lm("none")
    prompt = model.encode(PROMPT)
    want = list(model.generate_tokens(prompt, max_new_tokens=8))
    run, reset, calls, refuses = pumice.Session.run_flat, pumice.Session.reset, [], []

    def interrupted(self, arrays, steps=1):
        if refuses:
            raise pumice.InvalidInputError("reset() gives the state its first values", code="WrongState")
        calls.append(run(self, arrays, steps))
        if len(calls) == 2:
            refuses.append(True)
            raise KeyboardInterrupt
        return calls[-1]

    def clear(self):
        refuses.clear()
        reset(self)

    monkeypatch.setattr(pumice.Session, "run_flat", interrupted)
    monkeypatch.setattr(pumice.Session, "reset", clear)
    with pytest.raises(KeyboardInterrupt):
        list(model.generate_tokens([*prompt, *want], max_new_tokens=64))
    assert list(model.generate_tokens(prompt, max_new_tokens=8)) == want
