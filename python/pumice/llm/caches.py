# SPDX-License-Identifier: Apache-2.0
"""`Caches`: the methods of a language model's file, and which tokens its caches hold: tokens in, logits or tokens out.

A file has `batch` rows, each with caches and positions of its own. A position may be written again later, and what is
after the tokens of a row is never read: so a row that has nothing to do takes part in every call after its tokens,
and rows of different lengths are read together, the shorter ones with more tokens than they have.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from pumice.errors import Error, InvalidInputError
from pumice.llm.prompt_lookup import CHECKED, accepted
from pumice.llm.sampling import Sampling, next_token
from pumice.llm.tokens import MOST_STEPS, common
from pumice.runtime.session import Session

_CHUNK = 512  # tokens of a prompt in the first run; where that took less than _FAST seconds, four times as many
_FAST = 0.1
_IDLE = Sampling()


class Caches:
    """What the caches hold stays between calls: the beginning of a text that is there is not read again."""

    def __init__(self, session: Session, facts: Mapping[str, Any], eos: Iterable[int]) -> None:
        self.session = session
        self.eos: frozenset[int] = frozenset(eos)
        self.prompt_seconds = self.decode_seconds = 0.0  # of the last call
        self.prompt_tokens = self.decode_tokens = 0
        self.max_seq = int(facts["max_seq"])
        self.batch = int(facts["batch"])
        self._methods = {name: session.method(name) for name in session.methods}
        self._most = int(facts["chunk"])  # tokens of a run of prefill
        self._scored = int(facts.get("scored", self._most))  # of score
        self._chunk = min(_CHUNK, self._most)
        self._rows: list[list[int]] = [[]] * self.batch  # tokens whose keys and values a row has; replaced, not changed

    # ---- one text, in all rows -------------------------------------------------------------------------------------

    def read(self, tokens: Sequence[int]) -> np.ndarray:
        """Brings all rows to `tokens`, of which the beginning may be there; logits [V] after the last one.

        Raises InvalidInputError, before anything is written, for no tokens and for more than fit.
        """
        tokens = list(tokens)
        self._check_fits(len(tokens), 0)
        known = min(common(self._known, tokens), len(tokens) - 1)
        self._known = self._known[:known]
        logits = None
        while known < len(tokens):
            chunk = tokens[known : known + self._chunk]
            began = time.perf_counter()
            logits = self._run("prefill", chunk)
            self._learn_chunk(len(chunk), began)
            known += len(chunk)
        return logits

    def step(self, token: int) -> np.ndarray:
        """Adds a token to the caches; logits [V] after it. Raises as `read`."""
        self._check_fits(1, len(self._known))
        return self._run("decode", [token])

    def score(self, tokens: Sequence[int]) -> np.ndarray:
        """Logits [len(tokens), V] after each token, of a text from its beginning. Raises as `read`."""
        self._check_fits(len(tokens), 0)
        self._known, rows = [], []
        for start in range(0, len(tokens), self._scored):
            rows.append(self._run("score", list(tokens[start : start + self._scored])))
        return np.concatenate(rows)

    def steps(self, text: Sequence[int], count: int, how: Sampling) -> list[int]:
        """The `count` tokens drawn after `text`, of which all but the last is in the caches, by one submit."""
        return self.step_rows(dict.fromkeys(range(self.batch), (text, how)), count)[0]

    def check(self, text: Sequence[int], guesses: Sequence[int], how: Sampling) -> list[int]:
        """The tokens drawn after `text`, as far as they are guessed right, and one more; by one call, in all rows.

        The last token of `text` is not in the caches. There are at most CHECKED - 1 guesses. Raises as `read`.
        """
        if not text or len(guesses) >= CHECKED or "check" not in self._methods:
            most = CHECKED - 1 if "check" in self._methods else 0
            error = (
                f"{len(guesses)} guesses after {len(text)} tokens: this file checks up to {most}, after 1 token or more"
            )
            raise InvalidInputError(error, code="InvalidArgument", stage="input", path="guesses")
        first, tokens = len(text) - 1, [text[-1], *guesses]
        self._check_fits(CHECKED, first)
        padded = np.zeros((self.batch, CHECKED), np.int64)
        padded[:, : len(tokens)] = tokens
        rows = {row: ([*text, *guesses], how) for row in range(self.batch)}
        inputs = [padded, np.full(self.batch, first, np.int64), *self._drawn_inputs(rows, len(guesses))]
        (drawn,) = self._call("check", inputs)
        made = accepted(guesses, drawn[0, : len(tokens)].tolist())
        self._known = [*text, *made[:-1]]
        return made

    def generate_steps(self, text: Sequence[int], count: int, how: Sampling) -> list[int]:
        """The `count` tokens after `text`, whose last one is not in the caches; as many in a submit as one takes."""
        made: list[int] = []
        while len(made) < count:
            made += self.steps([*text, *made], min(MOST_STEPS, count - len(made)), how)
        return made

    def reset(self) -> None:
        """Forgets the texts in the caches."""
        self._known = []

    @property
    def draws(self) -> bool:
        """Whether the device draws the tokens; files of before the method for that leave it to the host."""
        return "sample" in self._methods

    # ---- a text for each row ---------------------------------------------------------------------------------------

    def held(self, row: int) -> list[int]:
        """The tokens that a row has."""
        return self._rows[row]

    def copy_rows(self, sources: Mapping[int, int]) -> None:
        """Gives rows what other rows hold, {row: the row it is copied from}, by one call; as all were before it.

        A call copies all caches, whatever they hold. Raises InvalidInputError for a row that there is not and for a
        file without the method `copy`: of one row, or exported before there was one.
        """
        for row in (*sources, *sources.values()):
            self._check_row(row)
        if not self.copies:
            text = f"a file of {self.batch} rows without a method that copies them: export it again with a larger batch"
            raise InvalidInputError(text, code="InvalidArgument", stage="input", path="rows")
        rows = [sources.get(row, row) for row in range(self.batch)]
        self._call("copy", [np.array(rows, np.int64)])
        self._rows = [self._rows[row] for row in rows]

    @property
    def copies(self) -> bool:
        """Whether the file can copy from row to row."""
        return "copy" in self._methods

    def read_rows(self, texts: Mapping[int, Sequence[int]]) -> None:
        """Brings rows to their texts, {row: tokens}, of which the beginnings may be there.

        All are read together: a call takes as many tokens of each as the longest rest has. A row that holds nothing
        and has no text takes that of the longest rest, which costs nothing and may be of use.
        Raises InvalidInputError, before anything is written, for a text longer than fits.
        """
        wanted = {row: list(text) for row, text in texts.items()}
        for row, text in wanted.items():
            self._check_row(row)
            self._check_fits(len(text) or 1, 0)
        for row, text in wanted.items():
            self._rows[row] = text[: common(self._rows[row], text)]

        def rest(row: int) -> int:
            return len(wanted[row]) - len(self._rows[row])

        longest = max(wanted, key=rest, default=None)
        if longest is None:
            return
        if rest(longest):
            wanted |= {row: wanted[longest] for row, known in enumerate(self._rows) if not known and row not in wanted}
        while left := max(map(rest, wanted)):
            self._read_some(wanted, min(left, self._chunk))

    def _read_some(self, texts: Mapping[int, list[int]], count: int) -> None:
        """The next `count` tokens of each row. Where the context ends before, tokens that it has are read again."""
        tokens, first = np.zeros((self.batch, count), np.int64), np.zeros(self.batch, np.int64)
        held = []
        for row, known in enumerate(self._rows):
            text = texts.get(row, known)
            first[row] = start = min(len(known), self.max_seq - count)
            part = text[start : start + count]
            tokens[row, : len(part)] = part
            held.append(text[: start + len(part)])
        began = time.perf_counter()
        self._call("prefill", [tokens, first])
        self._learn_chunk(count, began)
        self._rows = held

    def step_rows(self, texts: Mapping[int, tuple[Sequence[int], Sampling]], count: int) -> dict[int, list[int]]:
        """The `count` tokens drawn after each text, {row: tokens}, by one submit; 1 for a file that does not draw.

        texts: {row: (tokens, how)}; all but the last of the tokens are in the row's caches. Raises as `read`.
        """
        for row in texts:
            self._check_row(row)
        last, first = np.zeros((self.batch, 1), np.int64), np.zeros(self.batch, np.int64)
        for row, known in enumerate(self._rows):
            first[row] = min(len(known), self.max_seq - count)
            if row in texts:
                text, _ = texts[row]
                self._check_fits(count, len(text) - 1)
                first[row], last[row] = len(text) - 1, text[-1]
        if self.draws:
            inputs = [last, first, np.zeros(1, np.int64), *self._drawn_inputs(texts)]
            (made,) = self._call("sample", inputs, count)
            drawn = {row: made[row, :count].tolist() for row in texts}
        else:
            (logits,) = self._call("decode", [last, first])
            drawn = {row: [next_token(logits[row], how, len(text), text)] for row, (text, how) in texts.items()}
        for row, start in enumerate(first.tolist()):
            added = [texts[row][0][-1], *drawn[row][:-1]] if row in texts else []
            self._rows[row] = [*self._rows[row][:start], *added]
        return drawn

    def _drawn_inputs(self, texts: Mapping[int, tuple[Sequence[int], Sampling]], guesses: int = 0) -> list[np.ndarray]:
        """text, options and counts of a method that draws; `guesses`: how many of a text's last tokens are guessed."""
        before = np.zeros((self.batch, self.max_seq), np.int64)
        how = [_IDLE] * self.batch
        for row, (text, how[row]) in texts.items():
            if how[row].repeat_penalty != 1:  # else the tokens before are not read
                start = max(0, len(text) - guesses - how[row].repeat_last)
                before[row, start : len(text)] = text[start:]
        numbers = [np.stack([each.options() for each in how]), np.stack([each.counts() for each in how])]
        return [before, *numbers]

    # ---- calls -----------------------------------------------------------------------------------------------------

    @property
    def _known(self) -> list[int]:
        """The tokens that all rows have."""
        first = self._rows[0]
        return first[: min(len(first) if row is first else common(first, row) for row in self._rows)]

    @_known.setter
    def _known(self, tokens: list[int]) -> None:
        self._rows = [tokens] * self.batch

    def _run(self, method: str, tokens: list[int]) -> np.ndarray:
        """Logits of the first row; the others do the same."""
        known = self._known
        inputs = [np.tile(np.array(tokens, np.int64), (self.batch, 1)), np.full(self.batch, len(known), np.int64)]
        (logits,) = self._call(method, inputs)
        self._known = [*known, *tokens]
        return logits[0]

    def _call(self, method: str, inputs: list[np.ndarray], steps: int = 1) -> list[np.ndarray]:
        try:
            return self._methods[method].run_flat(inputs, steps=steps)
        except (Error, KeyboardInterrupt):
            self.reset()
            with contextlib.suppress(Error):  # of a lost device
                self.session.reset()  # what a run that failed has written in the caches
            raise

    def _check_fits(self, count: int, known: int) -> None:
        if not 1 <= count <= self.max_seq - known:
            text = f"{count} tokens after {known} of {self.max_seq} that fit: 1 to {self.max_seq - known} can follow"
            raise InvalidInputError(text, code="InvalidArgument", stage="input", path="tokens")

    def _check_row(self, row: int) -> None:
        if row not in range(self.batch):
            text = f"row {row!r} of {self.batch}: export with a larger batch"
            raise InvalidInputError(text, code="InvalidArgument", stage="input", path="row")

    def _learn_chunk(self, count: int, began: float) -> None:
        if count == self._chunk and time.perf_counter() - began < _FAST:
            self._chunk = min(4 * self._chunk, self._most)
