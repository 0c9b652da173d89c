# SPDX-License-Identifier: Apache-2.0
"""Several prompts at once: the tokens of each are those that the file with one row gives for it alone."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from tiny_llama import MAX_SEQ, corpus

import pumice
from pumice.llm.sampling import Sampling

BATCH = 4
# Of 1 to 75 tokens; the second and the third begin alike.
PROMPTS = ["|", "| arena | one device buffer", "| arena | one", "A value of the graph that is ", corpus()[100:175]]


@contextmanager
def endless(*models) -> Iterator[None]:
    """No token ends a text."""
    kept = [model.eos for model in models]
    for model in models:
        model.eos = frozenset()
    try:
        yield
    finally:
        for model, eos in zip(models, kept, strict=True):
            model.eos = eos


@contextmanager
def calls(model) -> Iterator[list[tuple[str, int]]]:
    """(method, tokens of a row or steps) of every call on the device."""
    seen, call = [], model._call

    def spy(method, inputs, steps=1):
        seen.append((method, steps if method == "sample" else inputs[0].shape[-1]))
        return call(method, inputs, steps)

    model._call = spy
    try:
        yield seen
    finally:
        del model._call


def together(model, prompts, **options) -> list[list[int]]:
    made: list[list[int]] = [[] for _ in prompts]
    for index, token in model.stream_batch_tokens(prompts, **options):
        made[index].append(token)
    return made


def alone(model, prompts, each=(), **options) -> list[list[int]]:
    each = each or [{}] * len(prompts)
    return [list(model.generate_tokens(prompt, **options, **own)) for prompt, own in zip(prompts, each, strict=True)]


@pytest.mark.parametrize("scheme", ["none", "int4"])
@pytest.mark.parametrize("count", [1, 3, 4, 5])
def test_tokens_are_those_of_each_prompt_alone(lm, scheme, count) -> None:
    one, many, prompts = lm(scheme), lm(scheme, BATCH), PROMPTS[-count:]
    many.reset()
    with endless(one, many):
        want = alone(one, prompts, max_new_tokens=60)
        assert together(many, prompts, max_new_tokens=60) == want
        assert together(many, prompts[::-1], max_new_tokens=60) == want[::-1], "rows that hold other texts"
    assert len({token for tokens in want for token in tokens}) > 12, "too few different tokens to see a mistake"


@pytest.mark.parametrize("features", ["none", "-fragments,-coopmat"])
def test_kernels_of_poorer_devices_agree(lm, file, features) -> None:
    many = pumice.llm.load(file("int4", BATCH), features=features)
    with endless(lm("int4"), many):
        assert together(many, PROMPTS, max_new_tokens=40) == alone(lm("int4"), PROMPTS, max_new_tokens=40)


@pytest.mark.parametrize("chunk", [512, 7])
def test_the_context_ends_each_text_by_itself(lm, chunk) -> None:
    one, many = lm("none"), lm("none", BATCH)
    tokens = one.tokenize(corpus()[: MAX_SEQ + 9])
    # The last one is read while others are near the end.
    prompts = [tokens[: MAX_SEQ - 1], tokens[5:6], tokens[2 : MAX_SEQ - 1], tokens[9:360], tokens[20:360]]
    many.reset()
    many._chunk, kept = chunk, many._chunk
    try:
        with endless(one, many):
            got = together(many, prompts, max_new_tokens=50)
            assert got == alone(one, prompts, max_new_tokens=50)
    finally:
        many._chunk = kept
    assert [len(made) for made in got] == [1, 50, 3, 33, 44]


DRAWN = [
    {"temperature": 0.9, "seed": 1},
    {"temperature": 0.9, "seed": 2},
    {"temperature": 1.1, "top_k": 40, "top_p": 0.9, "repeat_penalty": 1.2, "repeat_last": 9, "seed": 2**63 + 7},
    {},
    {"temperature": 0.0, "repeat_penalty": 1.3, "repeat_last": 300},
    {"temperature": 0.8, "min_p": 0.02, "max_new_tokens": 9},
]
DEFAULTS = {
    "temperature": 0.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0, "repeat_penalty": 1.0, "repeat_last": 64, "seed": 0,
    "max_new_tokens": 40,
}  # fmt: skip


@pytest.mark.parametrize("draws", [True, False], ids=["device", "host"])
def test_drawn_tokens_are_those_of_each_prompt_alone(lm, draws) -> None:
    one, many = lm("int4"), lm("int4", BATCH)
    prompts = [PROMPTS[1]] * 3 + PROMPTS[1:4]
    each = [DEFAULTS | own for own in DRAWN]
    listed = {name: [own[name] for own in each] for name in DEFAULTS}
    kept = dict(many._methods)
    with endless(one, many):
        want = alone(one, prompts, each)
        if not draws:
            many._methods.pop("sample")  # as files of before have it
        try:
            assert together(many, prompts, **listed) == want
        finally:
            many._methods = kept
    assert want[0] != want[1] != want[2] and len(want[5]) == 9


def test_more_prompts_than_rows_take_turns(lm) -> None:
    one, many = lm("none"), lm("none", BATCH)
    prompts = [corpus()[start : start + 5 + start % 11] for start in range(0, 400, 37)]
    most = [3 + 17 * index % 23 for index in range(len(prompts))]
    many.reset()
    with endless(one, many):
        want = alone(one, prompts, [{"max_new_tokens": each} for each in most])
        with calls(many) as seen:
            assert together(many, prompts, max_new_tokens=most) == want
    assert len(prompts) > 2 * BATCH
    steps = sum(count for method, count in seen if method == "sample")
    assert steps < sum(most) / BATCH + max(most), "rows waited"
    assert many.decode_tokens == sum(most) and many.prompt_tokens == sum(len(one.encode(prompt)) for prompt in prompts)


def test_rows_are_copied(lm) -> None:
    one, many = lm("none"), lm("none", BATCH)
    texts = {row: one.encode(PROMPTS[row + 1]) for row in range(BATCH)}
    want = {row: alone(one, [text], max_new_tokens=9)[0] for row, text in texts.items()}
    many.read_rows({row: text[:-1] for row, text in texts.items()})
    many.copy_rows({0: 2, 2: 1, 3: 3})
    after = [2, 1, 1, 3]
    assert [many.held(row) for row in range(BATCH)] == [texts[row][:-1] for row in after]
    with endless(one, many), calls(many) as seen:
        drawn = many.step_rows({row: (texts[source], Sampling()) for row, source in enumerate(after)}, 9)
    assert seen == [("sample", 9)] and drawn == {row: want[source] for row, source in enumerate(after)}
    for sources in ({4: 0}, {0: -1}):
        with pytest.raises(pumice.InvalidInputError, match="of 4: export with a larger batch"):
            many.copy_rows(sources)
    with pytest.raises(pumice.InvalidInputError, match="a file of 1 rows without a method that copies them"):
        one.copy_rows({0: 0})


def test_a_long_beginning_that_another_row_holds_is_copied(lm) -> None:
    one, many = lm("none"), lm("none", BATCH)
    system = corpus()[:150]
    prompts = [system + each for each in ("| arena", "A value", "The ", "one device", "| node |", "of")]
    want = alone(one, prompts, max_new_tokens=12)
    many.reset()
    many.read_rows({0: one.encode(system)[:-1], 1: [1], 2: [2], 3: [3]})
    with calls(many) as seen:
        assert together(many, prompts, max_new_tokens=12) == want
    assert [method for method, _ in seen].count("copy") == 1, "the next prompts find it in their rows"
    assert read(seen) < 60


def test_sixteen_rows(lm) -> None:
    one, many = lm("int4"), lm("int4", 16)
    prompts = [corpus()[start : start + 3 + start % 29] for start in range(0, 1000, 59)]
    assert len(prompts) > 16
    assert together(many, prompts, max_new_tokens=20) == alone(one, prompts, max_new_tokens=20)


def test_texts_end_with_their_stops(lm) -> None:
    one, many = lm("none"), lm("none", BATCH)
    texts = ["".join(one.generate(prompt, max_new_tokens=60)) for prompt in PROMPTS]
    stop = [texts[0][7:10], texts[3][20:23]]
    want = ["".join(one.generate(prompt, max_new_tokens=60, stop=stop)) for prompt in PROMPTS]
    assert want[0] != texts[0] and want[3] != texts[3]
    assert many.generate_batch(PROMPTS, max_new_tokens=60, stop=stop) == want
    pieces = list(many.stream_batch(PROMPTS, max_new_tokens=60, stop=stop))
    assert len(pieces) > len(PROMPTS) and len({index for index, _ in pieces[:BATCH]}) > 1, "one after another"
    assert many.generate_batch(PROMPTS[:1], max_new_tokens=60, stop=stop[0]) == want[:1]


def test_a_text_that_has_ended_runs_no_further(lm) -> None:
    many = lm("none", BATCH)
    text = many.generate_batch(PROMPTS[:1], max_new_tokens=300)[0]
    with calls(many) as seen:
        many.generate_batch(PROMPTS[:1], max_new_tokens=300, stop=[text[10:14]])
    assert sum(count for method, count in seen if method == "sample") < 14 + 32


def test_the_end_token_ends_its_text_alone(lm) -> None:
    one, many = lm("none"), lm("none", BATCH)
    tokens = alone(one, PROMPTS, max_new_tokens=30)
    end = tokens[1][6]
    one.eos, many.eos, kept = frozenset([end]), frozenset([end]), one.eos
    try:
        want = alone(one, PROMPTS, max_new_tokens=30)
        assert together(many, PROMPTS, max_new_tokens=30) == want
    finally:
        one.eos = many.eos = kept
    assert len(set(map(len, want))) > 1


def read(seen) -> int:
    return sum(count for method, count in seen if method == "prefill")


def test_a_prompt_takes_the_row_that_holds_its_beginning(lm) -> None:
    many = lm("none", BATCH)
    together(many, PROMPTS[1:], max_new_tokens=4)
    longer = [prompt + " x" for prompt in PROMPTS[1:]]
    order = [3, 1, 0, 2]
    with calls(many) as seen:
        got = together(many, [longer[index] for index in order], max_new_tokens=4)
    assert read(seen) <= 2
    assert got == alone(lm("none"), [longer[index] for index in order], max_new_tokens=4)


def test_rows_without_a_prompt_keep_their_texts(lm) -> None:
    many = lm("none", BATCH)
    long = many.tokenize(corpus()[: MAX_SEQ - 20])
    together(many, [*PROMPTS[1:4], "x"], max_new_tokens=4)
    with endless(lm("none"), many):
        want = alone(lm("none"), [long, *PROMPTS[1:4]], max_new_tokens=40)
        assert together(many, [long], max_new_tokens=40) == want[:1]
        assert len(want[0]) == 20, "the row is full"
        with calls(many) as seen:
            assert together(many, PROMPTS[1:4], max_new_tokens=40) == want[1:]
        assert read(seen) == 0
        assert together(many, [long + want[0][:15]], max_new_tokens=40) == [want[0][15:]]


def test_a_beginning_is_read_into_all_rows_at_once(lm) -> None:
    many, system = lm("none", BATCH), corpus()[:90]
    prompts = [system + rest for rest in ("| word", " A", " The value", " of", " and one", " two")]
    many.reset()
    many.read(many.tokenize(system))
    with calls(many) as seen:
        got = together(many, prompts, max_new_tokens=10)
    assert got == alone(lm("none"), prompts, max_new_tokens=10)
    assert read(seen) <= 10 + 8, "of the first four rests the longest, then of the other two"
    many.reset()
    together(many, [system], max_new_tokens=4)  # three rows had nothing to do and read along
    with calls(many) as seen:
        assert together(many, prompts, max_new_tokens=10) == got
    assert read(seen) <= 10 + 8 + 1


def test_other_calls_may_come_in_between(lm) -> None:
    one, many = lm("none"), lm("none", BATCH)
    want = alone(one, [*PROMPTS, "A value"], max_new_tokens=12)
    first, second = (many.stream_batch_tokens(PROMPTS[part], max_new_tokens=12) for part in (slice(3), slice(3, 5)))
    single = many.generate_tokens("A value", max_new_tokens=12)
    made = [[] for _ in want]
    for a, b, token in itertools.zip_longest(first, second, single):
        for found, start in ((a, 0), (b, 3)):
            if found:
                made[start + found[0]].append(found[1])
        made[5] += [token] if token is not None else []
    assert made == want


def test_one_text_after_several(lm) -> None:
    one, many = lm("none"), lm("none", BATCH)
    together(many, PROMPTS, max_new_tokens=9)
    assert list(many.generate_tokens(PROMPTS[1], max_new_tokens=30)) == alone(one, PROMPTS[1:2], max_new_tokens=30)[0]


def test_a_call_that_fails_leaves_nothing_behind(lm) -> None:
    many, how = lm("none", BATCH), pumice.llm.Sampling()
    want = together(many, PROMPTS[:3], max_new_tokens=5)
    with pytest.raises(pumice.InvalidInputError, match="9999"):  # the device finds it
        many.read_rows({0: [1, 9999]})
    assert [many.held(row) for row in range(BATCH)] == [[]] * BATCH
    assert together(many, PROMPTS[:3], max_new_tokens=5) == want
    with pytest.raises(pumice.InvalidInputError, match="64"):
        many.step_rows({0: (many.encode(PROMPTS[0]), how)}, 65)
    assert together(many, PROMPTS[:3], max_new_tokens=5) == want


def test_no_prompts_give_no_texts(lm) -> None:
    assert lm("none", BATCH).generate_batch([]) == []


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda m: m.generate_batch(["a", "x" * MAX_SEQ]), f"prompt 1: the prompt has {MAX_SEQ} tokens, and {MAX_SEQ}"),
        (lambda m: m.generate_batch(["a", "b", ""]), "prompt 2: the prompt has no tokens"),
        (lambda m: m.generate_batch(["a", []]), "prompt 1: the prompt has no tokens"),
        (lambda m: m.generate_batch([[1], [9999]]), "prompt 1: token 9999 is not in the vocabulary of 264"),
        (lambda m: m.generate_batch(["a", 5]), "prompt 1: a prompt is a text or a list of tokens.*got 5"),
        (lambda m: m.generate_batch(["a", [1.5]]), r"prompt 1: a prompt is a text.*got \[1.5\]"),
        (lambda m: m.generate_batch(["a", b"ab"]), "prompt 1: a prompt is a text.*got b'ab'"),
        (lambda m: m.generate_batch([1, 2]), "prompt 0: a prompt is a text"),
        (lambda m: m.generate_batch("ab"), "prompts must be a list of prompts, got str"),
        (lambda m: m.generate_batch(7), "prompts must be a list of prompts, got int"),
        (lambda m: m.generate_batch(["a", "b"], seed=[1]), "seed has 1 values for 2 prompts"),
        (lambda m: m.generate_batch(["a", "b"], temperature=[1, -1]), "prompt 1: temperature is -1"),
        (lambda m: m.generate_batch(["a", "b"], temperature="hot"), "prompt 0: temperature is 'hot'"),
        (lambda m: m.generate_batch(["a", "b"], max_new_tokens=[1, 0]), "prompt 1: max_new_tokens must be .* got 0"),
        (lambda m: m.generate_batch(["a"], stop=["b", ""]), "stop string is empty"),
        (lambda m: m.generate_batch(["a"], warmth=1), "unknown option 'warmth'"),
        (lambda m: m.stream_batch(["a", ""]), "prompt 1"),
        (lambda m: m.stream_batch_tokens(["a", ""]), "prompt 1"),
        (lambda m: m.read([1] * (MAX_SEQ + 1)), f"{MAX_SEQ + 1} tokens after 0 of {MAX_SEQ} that fit"),
        (lambda m: m.read([]), "0 tokens after 0"),
        (lambda m: m.score([1] * (MAX_SEQ + 1)), f"{MAX_SEQ + 1} tokens after 0"),
        (lambda m: m.read_rows({0: [1], 1: [1] * (MAX_SEQ + 1)}), f"{MAX_SEQ + 1} tokens after 0"),
        (lambda m: m.read_rows({BATCH: [1]}), f"row {BATCH} of {BATCH}"),
        (lambda m: m.step_rows({-1: ([1], pumice.llm.Sampling())}, 1), f"row -1 of {BATCH}"),
        (lambda m: m.steps([1] * MAX_SEQ, 2, pumice.llm.Sampling()), f"2 tokens after {MAX_SEQ - 1}"),
    ],
)
def test_bad_arguments_are_refused_before_anything_is_written(lm, call, match) -> None:
    many = lm("none", BATCH)
    together(many, PROMPTS[:BATCH], max_new_tokens=3)
    held = [list(many.held(row)) for row in range(BATCH)]
    with calls(many) as seen, pytest.raises(pumice.InvalidInputError, match=match):
        call(many)
    assert not seen
    assert [many.held(row) for row in range(BATCH)] == held
