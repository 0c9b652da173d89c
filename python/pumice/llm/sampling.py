# SPDX-License-Identifier: Apache-2.0
"""How the next token is drawn from logits: the reference of the device's sampling, too.

In this order, as llama.cpp does; each step sees what the one before kept:

1. repeat_penalty r: the logit x of a token among the last `repeat_last` ones becomes x / r where x > 0, else x * r.
2. temperature 0: the largest logit wins, the lower id of equal ones. The steps below do not happen.
3. top_k: the k largest logits stay (of equal ones the lower ids).
4. top_p: probabilities of what is left, largest first: as many stay as it takes to reach p, and at least one.
5. min_p: what has at least min_p times the largest probability stays.
6. temperature t: the token with the largest x / t - log(E) wins, E an exponentially distributed number. That draws from
   softmax(x / t), needs no sum and no order, and so gives the same token whatever computes it.

E of a token depends on the seed, its position in the text and its id alone, so that a text can be repeated. All numbers
are uint32 and wrap; the hash is PCG-RXS-M-XS:

    hash(x): s = x * 747796405 + 2891336453; w = ((s >> ((s >> 28) + 4)) ^ s) * 277803737; (w >> 22) ^ w
    h = hash(id + hash(position + hash(seed % 2^32 + hash(seed / 2^32))))
    v = (h + 0.5) / 2^32          E = -log(1 - v)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pumice.errors import InvalidInputError


@dataclass(frozen=True)
class Sampling:
    """temperature 0: always the most probable token. top_k 0, top_p 1, min_p 0 and repeat_penalty 1 change nothing."""

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    repeat_penalty: float = 1.0
    repeat_last: int = 64
    seed: int = 0

    def __post_init__(self) -> None:
        limits = {
            "temperature": self.temperature >= 0,
            "top_k": type(self.top_k) is int and self.top_k >= 0,
            "top_p": 0 < self.top_p <= 1,
            "min_p": 0 <= self.min_p <= 1,
            "repeat_penalty": 0 < self.repeat_penalty < float("inf"),
            "repeat_last": type(self.repeat_last) is int and self.repeat_last >= 0,
            "seed": type(self.seed) is int and 0 <= self.seed < 2**64,
        }
        for name, fits in limits.items():
            if not fits:
                text = f"{name} is {getattr(self, name)!r}, it must be {_RANGES[name]}"
                raise InvalidInputError(text, code="InvalidArgument", path=name)


_RANGES = {
    "temperature": "0 or more",
    "top_k": "a whole number, 0 (all) or more",
    "top_p": "above 0 and at most 1",
    "min_p": "between 0 and 1",
    "repeat_penalty": "above 0",
    "repeat_last": "a whole number, 0 or more",
    "seed": "a whole number from 0 to 2^64 - 1",
}


def next_token(logits: np.ndarray, how: Sampling, position: int, before: Sequence[int] = ()) -> int:
    """The token that comes at `position`. logits: [V]; before: the tokens so far. Changes nothing.

    Raises InvalidInputError when no logit is a number.
    """
    x = penalized(logits, how, before)
    if not (x > -np.inf).any():  # also of NaN
        raise InvalidInputError("no logit is a number: the model overflows", code="InvalidArgument", path="logits")
    x = np.where(np.isnan(x), -np.inf, x)
    if how.temperature == 0:
        return int(x.argmax())
    kept = candidates(x, how)
    score = x[kept] / how.temperature - np.log(exponential(how.seed, position, kept))
    return int(kept[score.argmax()])


def penalized(logits: np.ndarray, how: Sampling, before: Sequence[int]) -> np.ndarray:
    """Step 1, in fp64."""
    x = logits.astype(np.float64)
    if how.repeat_penalty != 1 and how.repeat_last and len(before):
        ids = np.unique(np.asarray(before[-how.repeat_last :], np.int64))
        x[ids] = np.where(x[ids] > 0, x[ids] / how.repeat_penalty, x[ids] * how.repeat_penalty)
    return x


def candidates(x: np.ndarray, how: Sampling) -> np.ndarray:
    """Steps 3 to 5: the ids that may be drawn, in rising order."""
    kept = np.flatnonzero(x > -np.inf)
    if 0 < how.top_k < len(kept) or how.top_p < 1:
        kept = kept[np.argsort(-x[kept], kind="stable")]
        kept = kept[: how.top_k] if how.top_k else kept
        if how.top_p < 1:
            weight = np.exp(x[kept] - x[kept[0]])
            reached = np.cumsum(weight) / weight.sum()
            kept = kept[: int(np.searchsorted(reached, how.top_p)) + 1]
        kept = np.sort(kept)
    if how.min_p > 0:
        kept = kept[np.exp(x[kept] - x[kept].max()) >= how.min_p]
    return kept


def probabilities(logits: np.ndarray, how: Sampling, before: Sequence[int] = ()) -> np.ndarray:
    """The distribution [V] that `next_token` draws from."""
    x = penalized(logits, how, before)
    made = np.zeros(len(x))
    if how.temperature == 0:
        made[x.argmax()] = 1
        return made
    kept = candidates(x, how)
    made[kept] = np.exp((x[kept] - x[kept].max()) / how.temperature)
    return made / made.sum()


def exponential(seed: int, position: int, ids: np.ndarray) -> np.ndarray:
    """E of every id, in fp64."""
    high, low = (np.array([part], np.uint32) for part in (seed >> 32, seed & 0xFFFFFFFF))
    with np.errstate(over="ignore"):
        at = _hash(np.array([position & 0xFFFFFFFF], np.uint32) + _hash(low + _hash(high)))
        h = _hash(ids.astype(np.uint32) + at)
    return -np.log1p(-(h + 0.5) / 2.0**32)


def _hash(x: np.ndarray) -> np.ndarray:
    s = x * np.uint32(747796405) + np.uint32(2891336453)
    w = ((s >> ((s >> np.uint32(28)) + np.uint32(4))) ^ s) * np.uint32(277803737)
    return (w >> np.uint32(22)) ^ w
