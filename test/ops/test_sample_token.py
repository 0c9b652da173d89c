# SPDX-License-Identifier: Apache-2.0
"""Tokens drawn by the device against llm/sampling.py, token for token, and against the exact distribution."""

from __future__ import annotations

import functools
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from support.sampling import BEFORE, CHI_SQUARE, LOGITS, OPTIONS

import pumice
from pumice.llm import sample_token  # noqa: F401 (defines the operator)
from pumice.llm.sampling import Sampling, next_token, probabilities

TEXT, MADE = 24, 8


class Draw(torch.nn.Module):
    def forward(self, logits, options, counts, text, made, token, position, step):
        return torch.ops.pumice.sample_token(logits, options, counts, text, made, token, position, step)


@functools.cache
def session(rows: int, tokens: int, dtype: torch.dtype = torch.float32, features: str | None = None):
    integers = [
        torch.zeros(*shape, dtype=torch.int64) for shape in ((rows, TEXT), (rows, MADE), (rows, 1), (rows,), (1,))
    ]
    given = torch.zeros(rows, tokens, dtype=dtype), torch.ones(rows, 4), torch.zeros(rows, 4, dtype=torch.int32)
    program = pumice.export(Draw(), (*given, *integers))
    assert program.report.operators["sample_token"] == 1
    return pumice.load(bytes(program), features=features)


def drawn(logits, hows, positions, texts=None, mades=None, step=0, features=None) -> list[int]:
    """A token for each row: of logits, options and the position of the new one each."""
    rows, tokens = logits.shape
    texts = np.zeros((rows, TEXT), np.int64) if texts is None else texts
    mades = np.zeros((rows, MADE), np.int64) if mades is None else mades
    options, counts = np.stack([how.options() for how in hows]), np.stack([how.counts() for how in hows])
    last = np.array(positions, np.int64) - 1
    integers = texts, mades, np.zeros((rows, 1), np.int64), last, np.array([step], np.int64)
    made, token, position, after = session(rows, tokens, logits.dtype, features)(
        logits, *(torch.from_numpy(x) for x in (options, counts, *integers))
    )
    want = mades.copy()
    want[:, step] = token[:, 0]
    assert np.array_equal(made, want)
    assert np.array_equal(position, last + 1)
    assert after.tolist() == [step + 1]
    return np.asarray(token)[:, 0].tolist()


HOWS = [
    Sampling(),
    Sampling(repeat_penalty=1.7, repeat_last=9),
    Sampling(1.0, seed=1),
    Sampling(0.03, seed=2),
    Sampling(2.5, seed=2**40 + 3),
    Sampling(1.0, top_k=1, seed=3),
    Sampling(1.0, top_k=7, seed=4),
    Sampling(0.8, top_k=40, top_p=0.9, seed=5),
    Sampling(0.8, top_k=300, top_p=0.5, min_p=0.01, repeat_penalty=1.3, seed=6),
    Sampling(1.0, top_p=0.01, seed=7),
    Sampling(1.0, top_p=0.95, seed=8),
    Sampling(1.3, top_p=1.0, min_p=0.1, seed=9),
    Sampling(1.0, min_p=1.0, seed=10),
    Sampling(9.0, top_k=2000, top_p=0.999, repeat_penalty=0.6, repeat_last=3, seed=2**64 - 1),
    Sampling(1e30, top_k=5, seed=11),
    Sampling(1e-30, top_p=0.5, seed=12),
    Sampling(float("inf"), seed=13),
]


def rows_of(kind: str, tokens: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(tokens)
    x = 3 * torch.randn(len(HOWS), tokens, generator=generator)
    if kind == "equal":
        return torch.full_like(x, -1.5)
    if kind == "ties":
        return x.round()
    if kind == "sharp":  # the largest is far above the others
        x[:, tokens // 2] = 60
    if kind == "special":
        wild = torch.randint(0, 7, x.shape, generator=generator)
        x = x.masked_fill(wild == 0, -torch.inf).masked_fill(wild == 1, torch.nan)
        x[0, -1] = torch.inf
        x[1:, 0] = 0.0
    return x


@pytest.mark.parametrize("features", [None, "none"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
@pytest.mark.parametrize("tokens", [1, 7, 1000, 5000])
@pytest.mark.parametrize("kind", ["random", "ties", "equal", "sharp", "special"])
def test_the_device_draws_what_the_host_draws(kind, tokens, dtype, features) -> None:
    logits = rows_of(kind, tokens).to(dtype)
    random = np.random.default_rng(tokens)
    texts, mades = (random.integers(0, tokens, (len(HOWS), size)) for size in (TEXT, MADE))
    positions, step = random.integers(5, TEXT, len(HOWS)), 5
    got = drawn(logits, HOWS, positions, texts, mades, step, features)
    for row, how in enumerate(HOWS):
        before = [*texts[row, : positions[row] - step], *mades[row, :step]]
        assert got[row] == next_token(logits[row].numpy(), how, int(positions[row]), before), how


@pytest.mark.parametrize("kind", ["random", "ties", "equal"])
def test_a_vocabulary_of_50257(kind) -> None:
    logits = rows_of(kind, 50257)
    got = drawn(logits, HOWS, range(len(HOWS)))
    assert got == [next_token(logits[row].numpy(), how, row, [0] * row) for row, how in enumerate(HOWS)]


def test_top_p_after_a_top_k_that_cuts_among_equal_logits() -> None:
    """Of fp16 logits many are equal: those that top_k has left out must not come back."""
    random = np.random.default_rng(0)
    logits = torch.from_numpy(random.uniform(-9, 9, (48, 5001))).half()
    hows = [Sampling(0.8, top_k=2 + row % 5, top_p=0.9, seed=row) for row in range(48)]
    positions = [row % TEXT for row in range(48)]
    want = [next_token(logits[row].float().numpy(), how, positions[row]) for row, how in enumerate(hows)]
    assert drawn(logits, hows, positions) == want


@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: "-".join(options))
def test_draws_follow_the_distribution(options) -> None:
    """One call draws for many positions of one text; two seeds differ, one repeats."""
    draws, how = 8000, Sampling(**options, seed=5)
    texts = np.tile(np.array(BEFORE + [9] * (TEXT - len(BEFORE))), (draws, 1))
    want = probabilities(LOGITS, how, BEFORE)
    positions = [len(BEFORE)] * draws
    hows = [Sampling(**options, seed=seed) for seed in range(draws)]
    tokens = drawn(torch.from_numpy(LOGITS).expand(draws, -1).contiguous(), hows, positions, texts)
    counts = np.bincount(tokens, minlength=len(want))
    possible = want > 0
    assert not counts[~possible].any()
    expected = draws * want[possible]
    assert float(((counts[possible] - expected) ** 2 / expected).sum()) < CHI_SQUARE[int(possible.sum()) - 1]
    if len(options) == 1:
        cooler = probabilities(LOGITS, Sampling(**{**options, "temperature": how.temperature * 1.1}), BEFORE)
        assert float(((counts - draws * cooler)[possible] ** 2 / (draws * cooler)[possible]).sum()) > CHI_SQUARE[9]


def test_eager_is_the_definition() -> None:
    logits = torch.randn(2, 50, generator=torch.Generator().manual_seed(1))
    how = Sampling(0.9, 20, 0.9, 0.01, 1.2, 4, 2**63 + 5)
    options, counts = (torch.from_numpy(np.stack([part] * 2)) for part in (how.options(), how.counts()))
    text, made = torch.arange(12).view(2, 6), torch.arange(4).view(2, 2)
    last = torch.zeros(2, 1, dtype=torch.int64), torch.tensor([4, 2]), torch.tensor([1])
    drawn, token, position, step = torch.ops.pumice.sample_token(logits, options, counts, text, made, *last)
    assert (position.tolist(), step.tolist()) == ([5, 3], [2])
    assert torch.equal(drawn, torch.stack((made[:, 0], token[:, 0]), 1))
    assert token.tolist() == [
        [next_token(logits[0].numpy(), how, 5, [0, 1, 2, 3, 0])],
        [next_token(logits[1].numpy(), how, 3, [6, 7, 2])],
    ]


def test_a_run_that_was_stopped_leaves_no_tickets() -> None:
    """The last part of a row to arrive compares them all. What arrived in a run that was cancelled must not count."""
    rows, tokens, features = 24, 50257, "submit_us=1"  # each workgroup is a submit of its own
    logits = rows_of("random", tokens)[:1].repeat(rows, 1)
    hows = [Sampling()] * rows

    def draw() -> list[int]:
        return drawn(logits, hows, [5] * rows, features=features)

    assert draw() == [int(logits[0].argmax())] * rows
    with pytest.raises(pumice.CancelledError), ThreadPoolExecutor(1) as pool:
        run = pool.submit(draw)
        while not run.done():
            time.sleep(0.001)
            session(rows, tokens, logits.dtype, features).cancel()
        run.result()
    logits[:, -1] = 100  # in the part that comes last
    assert draw() == [tokens - 1] * rows


RIGHT = ([1.0, 1.0, 0.0, 1.0], [0, 0, 0, 0])
BAD = {
    "temperature": ([-1.0, 1, 0, 1], RIGHT[1], "option 0 is out of its range"),
    "temperature NaN": ([torch.nan, 1, 0, 1], RIGHT[1], "option 0 is out of its range"),
    "top_p": ([1, 0.0, 0, 1], RIGHT[1], "option 1 is out of its range"),
    "top_p above 1": ([1, 1.1, 0, 1], RIGHT[1], "option 1 is out of its range"),
    "min_p": ([1, 1, torch.nan, 1], RIGHT[1], "option 2 is out of its range"),
    "repeat_penalty": ([1, 1, 0, torch.inf], RIGHT[1], "option 3 is out of its range"),
    "top_k": (RIGHT[0], [-1, 0, 0, 0], "option 4 is out of its range"),
    "repeat_last": (RIGHT[0], [0, -1, 0, 0], "option 5 is out of its range"),
}


def raw(options, counts, logits=None, text=0, made=0, position=3, step=1):
    """One row of seven tokens."""
    logits = torch.arange(7.0)[None] if logits is None else logits
    numbers = torch.tensor([options], dtype=torch.float32), torch.tensor([counts], dtype=torch.int32)
    words = torch.full((1, TEXT), text), torch.full((1, MADE), made), torch.tensor([[0]]), torch.tensor([position - 1])
    return session(1, 7)(logits, *numbers, *words, torch.tensor([step]))


@pytest.mark.parametrize("name", BAD)
def test_an_option_out_of_its_range_is_an_error(name) -> None:
    options, counts, match = BAD[name]
    with pytest.raises(pumice.InvalidInputError, match=match):
        raw(options, counts)
    raw(*RIGHT)  # the session goes on


def test_a_step_too_many_is_an_error() -> None:
    with pytest.raises(pumice.InvalidInputError, match=f"index {MADE} at position 0 is outside 0..{MADE - 1}"):
        raw(*RIGHT, step=MADE)
    raw(*RIGHT, step=MADE - 1)
    integers = torch.zeros(1, TEXT), torch.zeros(1, MADE), torch.zeros(1, 1), torch.tensor([3]), torch.tensor([MADE])
    with pytest.raises(IndexError, match=f"step {MADE} of a call that has up to {MADE}"):
        Draw()(torch.zeros(1, 7), torch.ones(1, 4), torch.zeros(1, 4).int(), *(x.long() for x in integers))


@pytest.mark.parametrize("value", [torch.nan, -torch.inf])
def test_no_logit_is_a_number(value) -> None:
    with pytest.raises(pumice.InvalidInputError, match="no logit of row 0 is a number"):
        raw(*RIGHT, logits=torch.full((1, 7), value))


@pytest.mark.parametrize(
    ("more", "match"),
    [
        ({"text": 7}, r"index 7 at position \d is outside 0..6"),
        ({"made": -1}, r"index -1 at position 2 is outside 0..6"),
        ({"step": MADE + 1}, f"index {MADE + 1} at position 0 is outside 0..{MADE}"),
        ({"position": TEXT + 2}, f"index {TEXT + 2} at position 0 is outside 0..{TEXT + 1}"),
        ({"position": 0}, "index 0 at position 0"),
    ],
)
def test_a_text_that_cannot_be_is_an_error(more, match) -> None:
    with pytest.raises(pumice.InvalidInputError, match=match):
        raw([1, 1, 0, 2], [0, 64, 0, 0], **more)
