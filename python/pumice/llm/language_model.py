# SPDX-License-Identifier: Apache-2.0
"""pumice.llm.load and `LanguageModel`: text in, text out, without torch."""

from __future__ import annotations

import operator
import os
import reprlib
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pumice
from pumice.errors import InvalidInputError
from pumice.llm.caches import Caches
from pumice.llm.prompt_lookup import CHECKED, PromptLookup
from pumice.llm.sampling import next_token
from pumice.llm.sequences import Prompt, Request, pieces, request_of, requests_of, run
from pumice.llm.text import Stream
from pumice.llm.texts import Texts, read_texts
from pumice.llm.tokens import next_count


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


class LanguageModel(Caches):
    """A decoder on a device, with its tokenizer. Calls from several threads must not overlap.

    `generate` and `chat` take one text, `generate_batch` several at once, in the rows of a file with a larger batch.
    What the caches hold stays between calls: the beginning of a prompt that is there is not read again.
    """

    def __init__(self, session: pumice.Session, texts: Texts) -> None:
        super().__init__(session, texts.facts, texts.eos)
        self.facts: Mapping[str, Any] = dict(texts.facts)
        self.tokenizer = _tokenizer(texts.tokenizer)
        self.guessed_tokens = self.accepted_tokens = 0  # of the last call
        self._texts = texts

    # ---- text ------------------------------------------------------------------------------------------------------

    def generate(
        self, prompt: Prompt, *, max_new_tokens: int = 128, stop: str | Sequence[str] = (), **options: Any
    ) -> Iterator[str]:
        """Yields pieces of text as they come; whole characters only, and nothing of a stop string.

        prompt: text, or tokens. max_new_tokens: at least 1; fewer come where the context ends. options: temperature,
        top_k, top_p, min_p, repeat_penalty, repeat_last, seed, as in pumice.llm.Sampling, and prompt_lookup_num_tokens.
        Raises InvalidInputError, before anything runs, for a prompt that is empty or does not fit and for a bad option.
        """
        stream = self._stream(stop)
        return self._text(self.generate_tokens(prompt, max_new_tokens=max_new_tokens, **options), stream)

    def generate_tokens(
        self, prompt: Prompt, *, max_new_tokens: int = 128, prompt_lookup_num_tokens: int = 0, **sampling: Any
    ) -> Iterator[int]:
        """As `generate`, token by token; ends after a token that ends the text, which comes, too.

        prompt_lookup_num_tokens: how many tokens a call guesses from the text so far, 0 to 7. The tokens are the same
        up to rounding; where a text repeats itself or its prompt, fewer calls give them. `guessed_tokens` and
        `accepted_tokens` tell how many were guessed and how many of them were right.
        """
        request = request_of(self.encode, self.max_seq, prompt, max_new_tokens, sampling)
        request.guesses = self._guesses(prompt_lookup_num_tokens)
        return self._tokens(request)

    def generate_batch(
        self,
        prompts: Sequence[Prompt],
        *,
        max_new_tokens: int | Sequence[int] = 128,
        stop: str | Sequence[str] = (),
        **sampling: Any,
    ) -> list[str]:
        """The texts that follow several prompts, in the order of the prompts; each is what its prompt gives alone.

        `batch` of them run at a time, the next one when one has ended. max_new_tokens and the options of sampling are
        those of `generate`, one for all or a list with one for each prompt; stop is for all.
        Raises InvalidInputError, before anything runs, as `generate` does; it names the prompt by its index.
        """
        coming = self.stream_batch(prompts, max_new_tokens=max_new_tokens, stop=stop, **sampling)
        texts = [""] * len(prompts)
        for index, piece in coming:
            texts[index] += piece
        return texts

    def stream_batch(
        self,
        prompts: Sequence[Prompt],
        *,
        max_new_tokens: int | Sequence[int] = 128,
        stop: str | Sequence[str] = (),
        **sampling: Any,
    ) -> Iterator[tuple[int, str]]:
        """As `generate_batch`, in pieces as they come: (index of the prompt, piece of its text)."""
        requests = requests_of(self.encode, self.max_seq, prompts, max_new_tokens, sampling)
        return pieces(self, requests, [self._stream(stop) for _ in requests])

    def stream_batch_tokens(
        self, prompts: Sequence[Prompt], *, max_new_tokens: int | Sequence[int] = 128, **sampling: Any
    ) -> Iterator[tuple[int, int]]:
        """As `stream_batch`, token by token: (index of the prompt, token), what ends a text, too."""
        requests = requests_of(self.encode, self.max_seq, prompts, max_new_tokens, sampling)
        return ((request.index, token) for request, token in run(self, requests))

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
        tokens = self.tokenize(prompt) if isinstance(prompt, str) else _integers(prompt)
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

    def _on_device(self, text: list[int], request: Request) -> Iterator[int]:
        """Up to `left` - 1 tokens after `text`; those of a submit take about _SUBMIT_SECONDS."""
        count, left = 1, request.left - 1
        lookup = PromptLookup(text if request.guesses else ())
        while left > 0:
            begin = time.perf_counter()
            if self._known != text[:-1]:  # another text came in between
                self.read(text[:-1])
            fits = request.guesses if len(text) - 1 + CHECKED <= self.max_seq else 0
            if guesses := lookup.guess(min(fits, left - 1)):
                made = self.check(text, guesses, request.how)
                self.guessed_tokens += len(guesses)
                self.accepted_tokens += len(made) - 1
            else:
                made = self.steps(text, min(count, left), request.how)
            seconds = time.perf_counter() - begin
            self.decode_seconds += seconds
            count = CHECKED if request.guesses else next_count(len(made), seconds)  # soon there is more to look up
            left -= len(made)
            for token in made:
                text.append(token)
                if request.guesses:
                    lookup.add(token)
                self.decode_tokens += 1
                yield token
                if token in self.eos:
                    return

    def _tokens(self, request: Request) -> Iterator[int]:
        prompt, how, most = request.tokens, request.how, request.left
        begin = time.perf_counter()
        logits = self.read(prompt)
        text = list(prompt)
        self.decode_tokens, self.decode_seconds, self.prompt_tokens = 0, 0.0, len(prompt)
        self.guessed_tokens = self.accepted_tokens = 0
        self.prompt_seconds = time.perf_counter() - begin
        if self.draws:
            text.append(next_token(logits, how, len(text), text))
            yield text[-1]
            if text[-1] not in self.eos:
                yield from self._on_device(text, request)
            return
        for index in range(most):
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

    def _guesses(self, count: int) -> int:
        if type(count) is not int or not 0 <= count < CHECKED:
            text = f"prompt_lookup_num_tokens must be an integer from 0 to {CHECKED - 1}, got {count!r}"
            raise _bad(text, "prompt_lookup_num_tokens")
        if count and "check" not in self._methods:
            text = "prompt_lookup_num_tokens: the file has no method that checks guesses; export the model again"
            raise _bad(text, "prompt_lookup_num_tokens")
        return count

    def _stream(self, stop: str | Sequence[str]) -> Stream:
        if self.tokenizer is None:
            raise _bad("the file has no tokenizer: ask for tokens, not for text", "prompt")
        return Stream(self.decode, stop)

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


def _integers(prompt: Any) -> list[int]:
    try:
        return [operator.index(token) for token in ([None] if isinstance(prompt, bytes) else prompt)]
    except TypeError:
        text = f"a prompt is a text or a list of tokens, which are integers, got {reprlib.repr(prompt)}"
        raise _bad(text, "prompt") from None


def _bad(text: str, path: str) -> InvalidInputError:
    return InvalidInputError(text, code="InvalidArgument", stage="input", path=path)
