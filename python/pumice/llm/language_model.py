# SPDX-License-Identifier: Apache-2.0
"""pumice.llm.load and `LanguageModel`: text in, text out, without torch."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

import pumice
from pumice.errors import InvalidInputError
from pumice.llm.sampling import Sampling, next_token
from pumice.llm.text import Stream
from pumice.llm.texts import Texts, read_texts

Prompt = str | Sequence[int]
_MOST_STEPS = 32  # of one submit; the device does nothing else meanwhile
_SUBMIT_SECONDS = 0.05
_CHUNK = 512  # tokens of a prompt in the first run; where that took less than _FAST seconds, four times as many
_FAST = 0.1


def load(
    path: str | os.PathLike[str],
    *,
    device: str | int | None = None,
    features: str | None = None,
    cache_dir: str | os.PathLike[str] | None = None,
    max_memory: int | None = None,
    max_seconds: float | None = None,
) -> LanguageModel:
    """Loads a file of pumice.llm.export onto a device; all options as in pumice.load.

    Raises InvalidFileError, also for a file that is no language model, and DeviceError.
    """
    budget = {"max_memory": max_memory, "max_seconds": max_seconds}
    session = pumice.load(path, device=device, features=features, cache_dir=cache_dir, **budget)
    return LanguageModel(session, read_texts(path))


class LanguageModel:
    """A decoder on a device, with its tokenizer. One text at a time: calls from several threads must not overlap.

    What the caches hold stays between calls: the beginning of a prompt that equals the last text is not read again.
    """

    def __init__(self, session: pumice.Session, texts: Texts) -> None:
        self.session = session
        self.eos: frozenset[int] = frozenset(texts.eos)
        self.max_seq = int(texts.facts["max_seq"])
        self.batch = int(texts.facts["batch"])
        self.facts: Mapping[str, Any] = dict(texts.facts)
        self.tokenizer = _tokenizer(texts.tokenizer)
        self.prompt_seconds = self.decode_seconds = 0.0
        self.prompt_tokens = self.decode_tokens = 0
        self._texts = texts
        self._methods = {name: session.method(name) for name in session.methods}
        self._most = int(texts.facts["chunk"])  # tokens of a run of prefill
        self._scored = int(texts.facts.get("scored", self._most))  # of score
        self._chunk = min(_CHUNK, self._most)
        self._known: list[int] = []  # the tokens whose keys and values are in the caches

    # ---- text ------------------------------------------------------------------------------------------------------

    def generate(
        self, prompt: Prompt, *, max_new_tokens: int = 128, stop: Sequence[str] = (), **sampling: Any
    ) -> Iterator[str]:
        """Yields pieces of text as they come; whole characters only, and nothing of a stop string.

        prompt: text, or tokens. max_new_tokens: at least 1; fewer come where the context ends. sampling: temperature,
        top_k, top_p, min_p, repeat_penalty, repeat_last, seed, as in pumice.llm.Sampling.
        Raises InvalidInputError, before anything runs, for a prompt that is empty or does not fit and for a bad option.
        """
        stream = Stream(self.decode, stop)
        return self._text(self.generate_tokens(prompt, max_new_tokens=max_new_tokens, **sampling), stream)

    def generate_tokens(self, prompt: Prompt, *, max_new_tokens: int = 128, **sampling: Any) -> Iterator[int]:
        """As `generate`, token by token; ends after a token that ends the text, which comes, too."""
        unknown = [name for name in sampling if name not in Sampling.__dataclass_fields__]
        if unknown:
            raise _bad(f"unknown option '{unknown[0]}'; known: {', '.join(Sampling.__dataclass_fields__)}", unknown[0])
        how = Sampling(**sampling)
        if type(max_new_tokens) is not int or max_new_tokens < 1:
            raise _bad(f"max_new_tokens must be a positive integer, got {max_new_tokens!r}", "max_new_tokens")
        return self._tokens(self.encode(prompt), how, max_new_tokens)

    def chat(self, messages: Sequence[Mapping[str, str]], **options: Any) -> Iterator[str]:
        """The answer to a conversation, [{"role": "user", "content": "..."}], in pieces; options as of `generate`."""
        return self.generate(self.chat_tokens(messages), **options)

    def chat_tokens(self, messages: Sequence[Mapping[str, str]]) -> list[int]:
        """A conversation as the model's chat template writes it. Raises InvalidInputError where there is none."""
        from pumice.llm.chat import render

        if self.tokenizer is None:
            raise _bad("the file has no tokenizer", "messages")
        text = render(self._texts.template, messages, self._texts.special)
        return self.tokenizer.encode(text, add_special_tokens=False).ids

    def encode(self, prompt: Prompt) -> list[int]:
        """The tokens of a prompt, checked: at least one, known, and fewer than fit. Raises InvalidInputError."""
        tokens = self.tokenize(prompt) if isinstance(prompt, str) else [int(token) for token in prompt]
        vocabulary = self.facts["vocabulary"]
        if not tokens:
            raise _bad("the prompt has no tokens", "prompt")
        if wrong := [token for token in tokens if not 0 <= token < vocabulary]:
            raise _bad(f"token {wrong[0]} is not in the vocabulary of {vocabulary}", "prompt")
        if len(tokens) >= self.max_seq:
            text = f"the prompt has {len(tokens)} tokens, and {self.max_seq} fit with the answer; export with max_seq"
            raise _bad(text, "prompt")
        return tokens

    def tokenize(self, text: str) -> list[int]:
        """The tokens of a text, however many."""
        if self.tokenizer is None:
            raise _bad("the file has no tokenizer: give tokens", "prompt")
        return self.tokenizer.encode(text).ids

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of tokens, without special ones."""
        if self.tokenizer is None:
            raise _bad("the file has no tokenizer: use generate_tokens", "prompt")
        return self.tokenizer.decode(list(tokens))

    @property
    def tokens_per_second(self) -> float:
        """Of the last call, while generating; 0 before."""
        return self.decode_tokens / self.decode_seconds if self.decode_seconds else 0.0

    # ---- tokens ----------------------------------------------------------------------------------------------------

    def read(self, tokens: Sequence[int]) -> np.ndarray:
        """Brings the caches to `tokens`, of which the beginning may be there; logits [V] after the last one."""
        tokens = list(tokens)
        known = min(_common(self._known, tokens), len(tokens) - 1)
        self._known = self._known[:known]
        logits = None
        while known < len(tokens):
            chunk = tokens[known : known + self._chunk]
            began = time.perf_counter()
            logits = self._run("prefill", chunk)
            if len(chunk) == self._chunk and time.perf_counter() - began < _FAST:
                self._chunk = min(4 * self._chunk, self._most)
            known += len(chunk)
        return logits

    def step(self, token: int) -> np.ndarray:
        """Adds a token to the caches; logits [V] after it."""
        return self._run("decode", [token])

    def score(self, tokens: Sequence[int]) -> np.ndarray:
        """Logits [len(tokens), V] after each token, of a text from its beginning; its tokens must fit."""
        self._known, rows = [], []
        for start in range(0, len(tokens), self._scored):
            rows.append(self._run("score", list(tokens[start : start + self._scored])))
        return np.concatenate(rows)

    def reset(self) -> None:
        """Forgets the text in the caches."""
        self._known = []

    def _run(self, method: str, tokens: list[int]) -> np.ndarray:
        """Logits of the first sequence; the others of a batch do the same."""
        first = len(self._known)
        inputs = [np.tile(np.array(tokens, np.int64), (self.batch, 1)), np.full(self.batch, first, np.int64)]
        (logits,) = self._call(method, inputs)
        self._known += tokens
        return logits[0]

    def _call(self, method: str, inputs: list[np.ndarray], steps: int = 1) -> list[np.ndarray]:
        try:
            return self._methods[method].run_flat(inputs, steps=steps)
        except pumice.Error:
            self._known = []
            with contextlib.suppress(pumice.Error):  # of a lost device
                self.session.reset()  # what a run that failed has written in the caches
            raise

    def steps(self, text: Sequence[int], count: int, how: Sampling) -> list[int]:
        """The `count` tokens drawn after `text`, of which all but the last is in the caches, by one submit."""
        first, token = len(self._known), text[-1]
        before = np.zeros((self.batch, self.max_seq), np.int64)
        before[:, : len(text)] = text
        inputs = [np.full((self.batch, 1), token, np.int64), np.full(self.batch, first, np.int64)]
        numbers = [np.tile(row, (self.batch, 1)) for row in (how.options(), how.counts())]
        (made,) = self._call("sample", [*inputs, np.array([count], np.int64), before, *numbers], count)
        tokens = [int(each) for each in made[0, :count]]
        self._known += [token, *tokens[:-1]]
        return tokens

    def _on_device(self, text: list[int], how: Sampling, most: int) -> Iterator[int]:
        """Up to `most` tokens after `text`; those of a submit take about _SUBMIT_SECONDS."""
        count, left = 1, most
        while left > 0:
            begin = time.perf_counter()
            if self._known != text[:-1]:  # another text came in between
                self.read(text[:-1])
            made = self.steps(text, min(count, left), how)
            seconds = time.perf_counter() - begin
            self.decode_seconds += seconds
            count = max(1, min(_MOST_STEPS, int(_SUBMIT_SECONDS * len(made) / seconds)))
            left -= len(made)
            for token in made:
                text.append(token)
                self.decode_tokens += 1
                yield token
                if token in self.eos:
                    return

    def generate_steps(self, text: Sequence[int], count: int, how: Sampling) -> list[int]:
        """The `count` tokens after `text`, whose last one is not in the caches; as many in a submit as one takes."""
        made: list[int] = []
        while len(made) < count:
            made += self.steps([*text, *made], min(_MOST_STEPS, count - len(made)), how)
        return made

    @property
    def draws(self) -> bool:
        """Whether the device draws the tokens; files of before the method for that leave it to the host."""
        return "sample" in self._methods

    def _tokens(self, prompt: list[int], how: Sampling, most: int) -> Iterator[int]:
        begin = time.perf_counter()
        logits = self.read(prompt)
        text = list(prompt)
        self.decode_tokens, self.decode_seconds, self.prompt_tokens = 0, 0.0, len(prompt)
        self.prompt_seconds = time.perf_counter() - begin
        if self.draws:
            text.append(next_token(logits, how, len(text), text))
            yield text[-1]
            if text[-1] not in self.eos:
                yield from self._on_device(text, how, min(most, self.max_seq - len(prompt)) - 1)
            return
        for index in range(min(most, self.max_seq - len(prompt))):
            begin = time.perf_counter()
            if index:  # another text may have come in between
                logits = self.step(text[-1]) if self._known == text[:-1] else self.read(text)
            text.append(next_token(logits, how, len(text), text))
            if index:
                self.decode_tokens += 1
                self.decode_seconds += time.perf_counter() - begin
            yield text[-1]
            if text[-1] in self.eos:
                return

    def _text(self, tokens: Iterator[int], stream: Stream) -> Iterator[str]:
        for token in tokens:
            if token not in self.eos and (piece := stream.add(token)):
                yield piece
            if stream.stopped:
                return
        if rest := stream.end():
            yield rest


def _tokenizer(data: bytes) -> Any:
    if not data:
        return None
    try:
        from tokenizers import Tokenizer
    except ModuleNotFoundError:
        text = "this file's tokenizer needs the package tokenizers: pip install 'pumice[llm]'"
        raise pumice.Error(text, code="MissingPackage") from None
    try:
        return Tokenizer.from_str(data.decode())
    except Exception as error:  # the package raises plain Exception
        raise pumice.InvalidFileError(f"the file's tokenizer: {error}", code="BadSchema", path="tokenizer") from None


def _common(a: Sequence[int], b: Sequence[int]) -> int:
    """How many tokens at the beginning are the same."""
    return next(
        (index for index, pair in enumerate(zip(a, b, strict=False)) if pair[0] != pair[1]), min(len(a), len(b))
    )


def _bad(text: str, path: str) -> InvalidInputError:
    return InvalidInputError(text, code="InvalidArgument", stage="input", path=path)
