# SPDX-License-Identifier: Apache-2.0
"""Speculation by prompt lookup: where the last tokens stood in the text before, what followed them is guessed to follow
again. One call of the method `check` (llm/steps.py) then tells which guesses are right, and the token after them.

Each token is drawn from the model's own logits, with the random numbers of its position: guesses change how many tokens
a call gives, never which.
"""

from __future__ import annotations

from collections.abc import Sequence

CHECKED = 8  # tokens that the method check takes, the last one and guesses: kernels of few rows take no more
_SIZES = (3, 2)  # of the last tokens that are looked for


class PromptLookup:
    """`add` every token of a text in turn; `guess` says what may follow."""

    def __init__(self, text: Sequence[int] = ()) -> None:
        self._text: list[int] = []
        self._after: dict[tuple[int, ...], int] = {}  # where the token after these stood last
        for token in text:
            self.add(token)

    def add(self, token: int) -> None:
        """The next token of the text."""
        for size in _SIZES:
            if len(self._text) >= size:
                self._after[tuple(self._text[-size:])] = len(self._text)
        self._text.append(token)

    def guess(self, count: int) -> list[int]:
        """Up to `count` tokens; none where the last tokens are new."""
        for size in _SIZES:
            at = self._after.get(tuple(self._text[-size:]))
            if at is not None:
                return self._text[at : at + max(count, 0)]
        return []


def accepted(guesses: Sequence[int], drawn: Sequence[int]) -> list[int]:
    """The tokens that a check gives: those drawn up to the first one that was guessed wrong, which comes, too.

    drawn: one more than guesses, the tokens after the text, after its first guess, and so on.
    """
    right = next((index for index, token in enumerate(guesses) if token != drawn[index]), len(guesses))
    return list(drawn[: right + 1])
