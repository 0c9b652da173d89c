# SPDX-License-Identifier: Apache-2.0
"""Tokens to text while they come: no half characters, and nothing of a stop string."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pumice.errors import InvalidInputError

_BROKEN = "\ufffd"  # what a tokenizer makes of bytes that are no whole character yet


class Stream:
    """`add` takes a token and gives the text that is sure by now; `stopped` once a stop string came."""

    def __init__(self, decode: Callable[[Sequence[int]], str], stop: str | Sequence[str] = ()) -> None:
        stop = [stop] if isinstance(stop, str) else stop
        if any(not isinstance(text, str) or not text for text in stop):
            text = f"a stop string is empty or no text: {list(stop)!r}"
            raise InvalidInputError(text, code="InvalidArgument", path="stop")
        self.stopped = False
        self._decode, self._stop = decode, list(stop)
        self._tokens: list[int] = []
        self._shown = 0  # tokens whose text is known; one more is decoded with them, since a tokenizer joins words
        self._start = 0
        self._held = ""  # may be the beginning of a stop string

    def add(self, token: int) -> str:
        """The text that this token makes sure, often its own, sometimes none."""
        self._tokens.append(token)
        return self._release(self._next(whole=True))

    def end(self) -> str:
        """What was held back."""
        if self.stopped:
            return ""
        text = self._release(self._next(whole=False))
        held, self._held = self._held, ""
        return text if self.stopped else text + held

    def _next(self, whole: bool) -> str:
        before = self._decode(self._tokens[self._start : self._shown])
        text = self._decode(self._tokens[self._start :])
        if len(text) <= len(before) or (whole and text.endswith(_BROKEN)):
            return ""
        self._start, self._shown = self._shown, len(self._tokens)
        return text[len(before) :]

    def _release(self, text: str) -> str:
        text = self._held + text
        places = [at for stop in self._stop if (at := text.find(stop)) >= 0]
        if places:
            self.stopped, self._held = True, ""
            return text[: min(places)]
        keep = max((_overlap(text, stop) for stop in self._stop), default=0)
        self._held = text[len(text) - keep :] if keep else ""
        return text[: len(text) - keep]


def _overlap(text: str, stop: str) -> int:
    """The length of the longest end of `text` that `stop` begins with."""
    return next((size for size in range(min(len(text), len(stop) - 1), 0, -1) if text.endswith(stop[:size])), 0)
