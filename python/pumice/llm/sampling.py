# SPDX-License-Identifier: Apache-2.0
"""How the next token is drawn from logits. The device's operator (llm/sample_token.py) gives the same tokens.

In this order, as llama.cpp does; each step sees what the one before kept:

1. repeat_penalty r: the logit x of a token among the last `repeat_last` ones becomes x / r where x > 0, else x * r.
2. temperature 0: the largest logit wins, the lower id of equal ones. The steps below do not happen.
3. top_k: the k largest logits stay (of equal ones the lower ids).
4. top_p: probabilities of what is left, largest first: as many stay as it takes to reach p, and at least one.
5. min_p: what has at least min_p times the largest probability stays.
6. temperature t: the token with the largest x / t - log(E) wins, E an exponentially distributed number. That draws from
   softmax(x / t), needs no sum and no order.

E of a token depends on the seed, its position in the text and its id alone, so that a text can be repeated. All numbers
are uint32 and wrap; the hash is PCG-RXS-M-XS:

    hash(x): s = x * 747796405 + 2891336453; w = ((s >> ((s >> 28) + 4)) ^ s) * 277803737; (w >> 22) ^ w
    h = hash(id + hash(position + hash(seed % 2^32 + hash(seed / 2^32))))
    v = (h + 0.5) / 2^32          E = -log(1 - v)

Everything that has a size is the same number on every device, for it is computed so:

- Logits are fp32, and so are the options. NaN counts as -inf, which is never drawn. The penalty is one operation.
- With m the largest logit, d = m - x is rounded to fp32, then down to whole 2^-24 (below 128). From there on all
  numbers are integers (fixed_point.py): o = d * log2(e), in 2^-24; the weight 2^-o, in 2^-32 and so 0 below; log2(E).
- top_p: weights are added exactly; reached is p of their sum, both rounded down to 2^-32. min_p: o <= -log2(min_p).
- t is 2^k * c, 1 <= c < 2, and d / 2^k takes the place of d; the token with the largest -log2(E) - o / c wins, the
  lower id of equal ones. What has an o / c of 38 or more cannot win. t below 2^-64 is 0, above 2^64 it is 2^64.
"""

from __future__ import annotations

import numbers
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pumice.errors import InvalidInputError
from pumice.llm import fixed_point

OPTIONS = ("temperature", "top_p", "min_p", "repeat_penalty")  # f32 of each sequence
COUNTS = ("top_k", "repeat_last", "seed_low", "seed_high")  # int32 of each sequence, the last two the words of the seed


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
            "temperature": _is_real(self.temperature) and self.temperature >= 0,
            "top_k": type(self.top_k) is int and self.top_k >= 0,
            "top_p": _is_real(self.top_p) and 0 < self.top_p <= 1,
            "min_p": _is_real(self.min_p) and 0 <= self.min_p <= 1,
            "repeat_penalty": _is_real(self.repeat_penalty) and 0 < self.repeat_penalty < float("inf"),
            "repeat_last": type(self.repeat_last) is int and self.repeat_last >= 0,
            "seed": type(self.seed) is int and 0 <= self.seed < 2**64,
        }
        for name, fits in limits.items():
            if not fits:
                text = f"{name} is {getattr(self, name)!r}, it must be {_RANGES[name]}"
                raise InvalidInputError(text, code="InvalidArgument", path=name)

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> Sampling:
        """From options by name. Raises InvalidInputError for a name that is unknown, too."""
        for name in options:
            if name not in cls.__dataclass_fields__:
                known = ", ".join(cls.__dataclass_fields__)
                text = f"unknown option '{name}'; known: {known}"
                raise InvalidInputError(text, code="InvalidArgument", stage="input", path=name)
        return cls(**options)

    @property
    def is_greedy(self) -> bool:
        """Whether the largest logit wins, with nothing done to it."""
        return self.temperature == 0 and self.repeat_penalty == 1

    def options(self) -> np.ndarray:
        """OPTIONS [4], f32: the nearest that a device takes."""
        tiny, most = np.finfo(np.float32).tiny, np.finfo(np.float32).max
        top_p, penalty = max(self.top_p, tiny), min(max(self.repeat_penalty, tiny), most)
        with np.errstate(over="ignore"):
            return np.array([self.temperature, top_p, self.min_p, penalty], np.float32)

    def counts(self) -> np.ndarray:
        """COUNTS [4], int32."""
        most = 2**31 - 1
        seed = np.array([self.seed & 0xFFFFFFFF, self.seed >> 32], np.uint32).view(np.int32)
        return np.array([min(self.top_k, most), min(self.repeat_last, most), *seed], np.int32)


_RANGES = {
    "temperature": "0 or more",
    "top_k": "a whole number, 0 (all) or more",
    "top_p": "above 0 and at most 1",
    "min_p": "between 0 and 1",
    "repeat_penalty": "above 0",
    "repeat_last": "a whole number, 0 or more",
    "seed": "a whole number from 0 to 2^64 - 1",
}


def _is_real(value: Any) -> bool:
    return isinstance(value, numbers.Real)


def next_token(logits: np.ndarray, how: Sampling, position: int, before: Sequence[int] = ()) -> int:
    """The token that comes at `position`. logits: [V]; before: the tokens so far. Changes nothing.

    Raises InvalidInputError when no logit is a number.
    """
    x = penalized(logits, how, before)
    if not (x > -np.inf).any():
        raise InvalidInputError("no logit is a number: the model overflows", code="InvalidArgument", path="logits")
    return int(draw(x, how, np.array([position]))[0])


def draw(x: np.ndarray, how: Sampling, positions: np.ndarray) -> np.ndarray:
    """Steps 2 to 6: the tokens that come at `positions` [N], each drawn from the same x [V] of `penalized`."""
    exponent, mantissa = _parts(how.options()[0])
    if exponent < -64:
        return np.full(len(positions), x.argmax())
    if exponent > 64:
        exponent, mantissa = 64, 1 << 23
    kept = candidates(x, how)
    below = fixed_point.octaves(_distance(x[kept], x.max(), 24 - exponent))
    cooled = fixed_point.times(below, fixed_point.inverse(mantissa))
    kept, cooled = kept[cooled < fixed_point.COLD], cooled[cooled < fixed_point.COLD]
    score = fixed_point.gumbel(random_bits(how.seed, positions[:, None], kept)) - cooled.astype(np.int64)
    return kept[score.argmax(axis=1)]


def penalized(logits: np.ndarray, how: Sampling, before: Sequence[int]) -> np.ndarray:
    """Step 1, in fp32, without NaN."""
    x = logits.astype(np.float32) + np.float32(0)  # of the two zeros the positive one
    x = np.where(np.isnan(x), np.float32(-np.inf), x)
    if how.repeat_penalty != 1 and how.repeat_last and len(before):
        ids, penalty = np.unique(np.asarray(before[-how.repeat_last :], np.int64)), how.options()[3]
        with np.errstate(over="ignore"):
            x[ids] = np.where(x[ids] > 0, x[ids] / penalty, x[ids] * penalty) + np.float32(0)
    return x


def candidates(x: np.ndarray, how: Sampling) -> np.ndarray:
    """Steps 3 to 5: the ids that may be drawn, in rising order."""
    _, top_p, min_p, _ = how.options()
    kept = np.flatnonzero(x > -np.inf)
    if 0 < how.top_k < len(kept) or top_p < 1:
        kept = kept[np.argsort(-x[kept], kind="stable")]
        kept = kept[: how.top_k] if how.top_k else kept
        if top_p < 1:
            reached = np.cumsum(fixed_point.weight(fixed_point.octaves(_distance(x[kept], x.max(), 24))))
            least = max(1, int(reached[-1]) * int(float(top_p) * 2**32) >> 32)
            kept = kept[: int(np.searchsorted(reached, np.uint64(least))) + 1]
        kept = np.sort(kept)
    exponent, mantissa = _parts(min_p)
    if exponent > -127:
        least = ((23 - exponent) << 24) - (int(fixed_point.log2(np.array([mantissa], np.uint64))[0]) >> 3)
        kept = kept[fixed_point.octaves(_distance(x[kept], x.max(), 24)) <= least]
    return kept


def probabilities(logits: np.ndarray, how: Sampling, before: Sequence[int] = ()) -> np.ndarray:
    """The distribution [V] that `next_token` draws from."""
    x = penalized(logits, how, before).astype(np.float64)
    made = np.zeros(len(x))
    if how.temperature == 0:
        made[x.argmax()] = 1
        return made
    kept = candidates(x.astype(np.float32), how)
    made[kept] = np.exp((x[kept] - x[kept].max()) / how.temperature)
    return made / made.sum()


def random_bits(seed: int, positions: np.ndarray, ids: np.ndarray) -> np.ndarray:
    """h of positions and ids, which are broadcast."""
    word = np.uint64(0xFFFFFFFF)
    of_seed = fixed_point.hashed((fixed_point.hashed(np.array([seed >> 32], np.uint64)) + seed % 2**32) & word)
    of_position = fixed_point.hashed((of_seed + positions.astype(np.uint64)) & word)
    return fixed_point.hashed((of_position + ids.astype(np.uint64)) & word)


def _parts(x: np.float32) -> tuple[int, int]:
    """x = 2^exponent * mantissa / 2^23. The exponent is -127 for 0 and below 2^-126, 128 for infinity."""
    bits = int(np.float32(x).view(np.uint32))
    return (bits >> 23) - 127, bits & 0x7FFFFF | 0x800000


def _distance(x: np.ndarray, largest: np.float32, shift: int) -> np.ndarray:
    """(largest - x) * 2^shift, rounded down, at most 2^31."""
    with np.errstate(invalid="ignore"):
        d = np.where(x == largest, np.float32(0), largest - x).astype(np.float64)
    return np.minimum(np.floor(d * 2.0**shift), 2.0**31).astype(np.uint64)
