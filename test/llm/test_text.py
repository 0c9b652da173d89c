# SPDX-License-Identifier: Apache-2.0
"""Text from tokens while they come: whole characters, and nothing of a stop string."""

from __future__ import annotations

import pytest
from tiny_llama import byte_tokenizer

import pumice
from pumice.llm.text import Stream

TOKENIZER = byte_tokenizer()


def pieces(text: str, stop: tuple[str, ...] = ()) -> tuple[list[str], Stream]:
    stream = Stream(TOKENIZER.decode, stop)
    made = []
    for token in TOKENIZER.encode(text).ids:
        made.append(stream.add(token))
        if stream.stopped:
            break
    return [*made, stream.end()], stream


def test_characters_of_several_bytes_come_whole() -> None:
    text = "aé€😀 b"
    made, _ = pieces(text)
    assert "".join(made) == text and all("\ufffd" not in piece for piece in made)
    assert made[:3] == ["a", "", "é"]


def test_broken_bytes_come_at_the_end() -> None:
    stream = Stream(TOKENIZER.decode)
    first = TOKENIZER.encode("é").ids[0]
    assert stream.add(first) == "" and stream.end() == "\ufffd"


def test_a_stop_string_over_several_tokens_does_not_show() -> None:
    made, stream = pieces("one END two", stop=("END",))
    assert "".join(made) == "one " and stream.stopped


def test_the_beginning_of_a_stop_string_is_held_back_and_comes_when_it_is_none() -> None:
    made, stream = pieces("an EN door", stop=("END",))
    assert "".join(made) == "an EN door" and not stream.stopped
    assert made[3:6] == ["", "", "EN "]


def test_the_first_of_two_stop_strings_counts() -> None:
    made, _ = pieces("a--b##c", stop=("##", "--"))
    assert "".join(made) == "a"


@pytest.mark.parametrize("stop", [("",), ("a", ""), (3,)])
def test_an_empty_stop_string_is_refused(stop) -> None:
    with pytest.raises(pumice.InvalidInputError, match="stop string"):
        Stream(TOKENIZER.decode, stop)
