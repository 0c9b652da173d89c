# SPDX-License-Identifier: Apache-2.0
"""Drawing tokens: the distribution is the documented one, a seed repeats it, and the random numbers are as written."""

from __future__ import annotations

import numpy as np
import pytest
from support.sampling import BEFORE, CHI_SQUARE, LOGITS, OPTIONS

import pumice
from pumice.llm import fixed_point
from pumice.llm.sampling import Sampling, draw, next_token, penalized, probabilities, random_bits

DRAWS = 20_000


def by_hand(how: Sampling) -> np.ndarray:
    """The distribution, written down a second time in plain Python."""
    x = [float(logit) for logit in LOGITS]
    for token in BEFORE:
        x[token] = x[token] / how.repeat_penalty if x[token] > 0 else x[token] * how.repeat_penalty
    order = sorted(range(len(x)), key=lambda token: (-x[token], token))[: how.top_k or None]
    total, reached, kept = sum(np.exp(x[token]) for token in order), 0.0, []
    for token in order:
        kept.append(token)
        reached += np.exp(x[token]) / total
        if how.top_p < 1 and reached >= how.top_p:
            break
    kept = [token for token in kept if np.exp(x[token] - x[kept[0]]) >= how.min_p]
    weights = {token: np.exp(x[token] / how.temperature) for token in kept}
    return np.array([weights.get(token, 0.0) / sum(weights.values()) for token in range(len(x))])


@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: "-".join(options))
def test_draws_follow_the_distribution(options) -> None:
    how = Sampling(**options, seed=5)
    want = by_hand(how)
    np.testing.assert_allclose(probabilities(LOGITS, how, BEFORE), want, atol=1e-12)
    counts = np.bincount(draw(penalized(LOGITS, how, BEFORE), how, np.arange(DRAWS)), minlength=len(want))
    possible = want > 0
    assert not counts[~possible].any()
    expected = DRAWS * want[possible]
    error = float(((counts[possible] - expected) ** 2 / expected).sum())
    assert error < CHI_SQUARE[int(possible.sum()) - 1], (error, counts, DRAWS * want)


def test_another_distribution_would_be_seen() -> None:
    how = Sampling(temperature=1.0, seed=5)
    counts = np.bincount(draw(LOGITS, how, np.arange(DRAWS)), minlength=len(LOGITS))
    wrong = DRAWS * probabilities(LOGITS, Sampling(temperature=1.1))
    assert float(((counts - wrong) ** 2 / wrong).sum()) > CHI_SQUARE[9]


def test_positions_and_seeds_are_independent() -> None:
    """Neighbours in position, in seed (its low and its high half) and in id have uncorrelated numbers."""
    ids = np.arange(64)
    one = np.array([1])
    of_position = random_bits(1, np.arange(256)[:, None], ids)
    of_seed = np.array([random_bits(seed, one, ids) for seed in range(256)])
    of_high = np.array([random_bits(seed << 32, one, ids) for seed in range(256)])
    for table in (-np.log1p(-(bits + 0.5) / 2**32) for bits in (of_position, of_seed, of_high)):
        assert abs(table.mean() - 1) < 0.05 and len(np.unique(table)) > 0.999 * table.size
        for a, b in ((table[1:], table[:-1]), (table[:, 1:], table[:, :-1])):
            assert abs(np.corrcoef(a.ravel(), b.ravel())[0, 1]) < 0.03


def test_a_seed_repeats() -> None:
    draw = lambda seed: [next_token(LOGITS, Sampling(temperature=1.0, seed=seed), p) for p in range(50)]  # noqa: E731
    assert draw(1) == draw(1)
    assert len({tuple(draw(seed)) for seed in (1, 2, 1 << 32, (1 << 32) + 1)}) == 4


def test_the_random_numbers_are_as_written_down() -> None:
    """The formula of the module in plain integers: a device must make the same."""

    def pcg(x: int) -> int:
        s = (x * 747796405 + 2891336453) % 2**32
        w = (((s >> ((s >> 28) + 4)) ^ s) * 277803737) % 2**32
        return (w >> 22) ^ w

    seed, position, token = (7 << 32) + 9, 123, 4567
    h = pcg((token + pcg((position + pcg((seed % 2**32 + pcg(seed >> 32)) % 2**32)) % 2**32)) % 2**32)
    assert int(random_bits(seed, np.array([position]), np.array([token]))[0]) == h


def test_the_integers_are_what_they_stand_for() -> None:
    """Powers and logarithms against fp64, over their ranges and at their ends; bounds in units of the last place."""
    some = np.random.default_rng(0).integers(0, 2**32, 200_000)
    ends = np.concatenate(
        [np.arange(1000), 2 ** np.arange(32), 2**31 + np.arange(-1000, 1000), 2**32 - 1 - np.arange(1000)]
    )
    x = np.concatenate([some, ends]).astype(np.uint64)
    whole = x[x < 2**31]
    assert np.abs(fixed_point.octaves(whole) - whole * np.log2(np.e)).max() < 1
    assert np.abs(fixed_point.weight(x % 2**29) - 2 ** (32 - (x % 2**29) / 2**24)).max() < 3
    assert not fixed_point.weight(np.array([2**29, 2**32 - 1], np.uint64)).any()
    assert np.abs(fixed_point.log2(x[x > 0]) - np.log2(x[x > 0]) * 2**27).max() < 2
    v = (x + 0.5) / 2**32
    assert np.abs(fixed_point.gumbel(x) + np.log2(-np.log1p(-v) / np.log(2)) * 2**24).max() < 3


def test_temperature_0_takes_the_first_of_the_largest() -> None:
    assert next_token(np.array([1.0, 3.0, 3.0]), Sampling(), 0) == 1
    assert next_token(np.array([np.nan, 0.0, -np.inf]), Sampling(), 0) == 1


def test_the_penalty_forgets() -> None:
    how = Sampling(repeat_penalty=100.0, repeat_last=2)
    assert next_token(LOGITS, how, 3, [0, 1, 2]) == 0
    assert next_token(LOGITS, how, 3, [1, 2, 0]) == 1


def test_no_logit_is_a_number() -> None:
    with pytest.raises(pumice.InvalidInputError, match="no logit is a number"):
        next_token(np.full(4, np.nan), Sampling(), 0)


@pytest.mark.parametrize(
    "options",
    [{"temperature": -1}, {"temperature": float("nan")}, {"top_k": -1}, {"top_k": 1.5}, {"top_p": 0.0}, {"top_p": 1.1},
     {"min_p": -0.1}, {"min_p": 2.0}, {"repeat_penalty": 0.0}, {"repeat_last": -1}, {"seed": -1}, {"seed": 2**64}],
)  # fmt: skip
def test_a_number_out_of_range_is_named(options) -> None:
    (name,) = options
    with pytest.raises(pumice.InvalidInputError, match=f"{name} is .*, it must be"):
        Sampling(**options)
