# SPDX-License-Identifier: Apache-2.0
"""Several texts at once: each in a row of the caches, and where there are more texts than rows, the next one takes the
row of one that has ended."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pumice.errors import InvalidInputError
from pumice.llm.sampling import Sampling
from pumice.llm.text import Stream
from pumice.llm.tokens import common, next_count

Prompt = str | Sequence[int]
_WORTH_A_COPY = 64  # tokens that need not be read then; a guess: a call copies all caches
Encode = Callable[[Prompt], list[int]]  # a prompt's tokens, checked


class Rows(Protocol):
    """What `run` needs of a model: `Caches`, llm/caches.py."""

    batch: int
    eos: frozenset[int]
    prompt_tokens: int
    decode_tokens: int
    prompt_seconds: float
    decode_seconds: float

    @property
    def draws(self) -> bool:
        """Whether the device draws the tokens."""

    @property
    def copies(self) -> bool:
        """Whether rows can be copied."""

    def held(self, row: int) -> list[int]:
        """The tokens that a row has."""

    def copy_rows(self, sources: Mapping[int, int]) -> None:
        """Gives rows what others hold."""

    def read_rows(self, texts: Mapping[int, Sequence[int]]) -> None:
        """Brings rows to their texts."""

    def step_rows(self, texts: Mapping[int, tuple[Sequence[int], Sampling]], count: int) -> dict[int, list[int]]:
        """The `count` tokens after each text."""


@dataclass(eq=False)
class Request:
    """`tokens`: the prompt, then the answer, too; `left`: tokens that may still come; `index`: among the prompts;
    `guesses`: tokens that a call guesses."""

    tokens: list[int]
    how: Sampling
    left: int
    index: int = 0
    guesses: int = 0


def request_of(
    encode: Encode, max_seq: int, prompt: Prompt, max_new_tokens: int, options: Mapping[str, Any]
) -> Request:
    """What a user asks for, checked; max_seq: tokens that fit. Raises InvalidInputError, as `encode` does."""
    how = Sampling.of(options)
    if type(max_new_tokens) is not int or max_new_tokens < 1:
        raise _bad(f"max_new_tokens must be a positive integer, got {max_new_tokens!r}", "max_new_tokens")
    tokens = encode(prompt)
    return Request(tokens, how, min(max_new_tokens, max_seq - len(tokens)))


def requests_of(
    encode: Encode,
    max_seq: int,
    prompts: Sequence[Prompt],
    max_new_tokens: int | Sequence[int],
    options: Mapping[str, Any],
) -> list[Request]:
    """One for each prompt; max_new_tokens and each option: one value for all, or a list of one for each prompt.

    Raises InvalidInputError, which names the prompt by its index.
    """
    if isinstance(prompts, str | bytes) or not isinstance(prompts, Sequence):
        raise _bad(f"prompts must be a list of prompts, got {type(prompts).__name__}", "prompts")
    each = {name: _for_each(name, value, len(prompts)) for name, value in options.items()}
    most = _for_each("max_new_tokens", max_new_tokens, len(prompts))
    made = []
    for index, prompt in enumerate(prompts):
        try:
            own = {name: values[index] for name, values in each.items()}
            request = request_of(encode, max_seq, prompt, most[index], own)
        except InvalidInputError as error:
            raise InvalidInputError(
                f"prompt {index}: {error}", code=error.code, stage=error.stage, path=f"prompts[{index}]"
            ) from None
        request.index = index
        made.append(request)
    return made


def _for_each(name: str, value: Any, count: int) -> Sequence[Any]:
    if not isinstance(value, list | tuple):
        return [value] * count
    if len(value) != count:
        raise _bad(f"{name} has {len(value)} values for {count} prompts", name)
    return value


def pieces(lm: Rows, requests: Sequence[Request], streams: Sequence[Stream]) -> Iterator[tuple[int, str]]:
    """Yields (index of the prompt, piece of its text) as they come; a text ends with its stream, too."""
    for request, token in run(lm, requests):
        stream = streams[request.index]
        if token not in lm.eos and (piece := stream.add(token)):
            yield request.index, piece
        if stream.stopped:
            request.left = 0
        if not request.left and (rest := stream.end()):
            yield request.index, rest


def run(lm: Rows, requests: Sequence[Request]) -> Iterator[tuple[Request, int]]:
    """Yields each request with its next token, until none has tokens left. What ends a text comes, too. Who sets `left`
    of a request to 0 ends it."""
    lm.prompt_seconds = lm.decode_seconds = 0.0
    lm.prompt_tokens, lm.decode_tokens = sum(len(request.tokens) for request in requests), 0
    waiting, running, count = list(requests), {}, 1
    while waiting or running:
        begin = time.perf_counter()
        admitted = _admit(lm, waiting, [row for row in range(lm.batch) if row not in running])
        if sources := _sources(lm, admitted):
            lm.copy_rows(sources)
        running |= admitted
        lm.read_rows({row: request.tokens[:-1] for row, request in running.items()})
        read = time.perf_counter()
        lm.prompt_seconds += read - begin
        count = min(count, *(request.left for request in running.values())) if lm.draws else 1
        drawn = lm.step_rows({row: (request.tokens, request.how) for row, request in running.items()}, count)
        seconds = time.perf_counter() - read
        lm.decode_seconds += seconds
        count = next_count(count, seconds)
        for tokens in zip(*drawn.values(), strict=True):
            for request, token in zip(running.values(), tokens, strict=True):
                if request.left:
                    request.tokens.append(token)
                    request.left = 0 if token in lm.eos else request.left - 1
                    lm.decode_tokens += 1
                    yield request, token
        running = {row: request for row, request in running.items() if request.left}


def _admit(lm: Rows, waiting: list[Request], free: list[int]) -> dict[int, Request]:
    """The next requests from `waiting`, one for each free row: pairs with the longest common beginning first, and of
    equal ones that with the row that holds the least."""
    requests = waiting[: len(free)]
    del waiting[: len(requests)]
    shared = {(request, row): common(lm.held(row), request.tokens) for request in requests for row in free}
    given: dict[int, Request] = {}
    for request, row in sorted(shared, key=lambda pair: (-shared[pair], len(lm.held(pair[1])))):
        if row not in given and request not in given.values():
            given[row] = request
    return given


def _sources(lm: Rows, admitted: Mapping[int, Request]) -> dict[int, int]:
    """The rows that hold so much more of a new text's beginning than its own row does that a copy is worth it."""
    if not lm.copies:
        return {}

    def shared(request: Request, row: int) -> int:
        return common(lm.held(row), request.tokens)

    best = {row: max(range(lm.batch), key=lambda other: shared(each, other)) for row, each in admitted.items()}
    return {
        row: source
        for row, source in best.items()
        if shared(admitted[row], source) >= shared(admitted[row], row) + _WORTH_A_COPY
    }


def _bad(text: str, path: str) -> InvalidInputError:
    return InvalidInputError(text, code="InvalidArgument", stage="input", path=path)
