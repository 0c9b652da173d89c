# SPDX-License-Identifier: Apache-2.0
"""How well a model foretells a text."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from pumice.errors import InvalidInputError
from pumice.llm.language_model import LanguageModel


@dataclass(frozen=True)
class Perplexity:
    """`loss`: the mean of -log of each token's probability, in nats, over `tokens` tokens; `error`: one standard error
    of `perplexity`, e to the loss."""

    perplexity: float
    error: float
    loss: float
    tokens: int


def perplexity(lm: LanguageModel, text: str, context: int | None = None) -> Perplexity:
    """Every token of a text but the first of each part; parts of `context` tokens begin anew. None: what fits.

    Raises InvalidInputError for a text of fewer than two tokens and a context that does not fit.
    """
    context = lm.max_seq if context is None else context
    if not 2 <= context <= lm.max_seq:
        text = f"context is {context}, it must be 2 to {lm.max_seq}"
        raise InvalidInputError(text, code="InvalidArgument", path="context")
    tokens = lm.tokenize(text)
    losses = [
        _losses(lm.score(part), part)
        for start in range(0, len(tokens), context)
        if len(part := tokens[start : start + context]) > 1
    ]
    if not losses:
        raise InvalidInputError(f"the text has {len(tokens)} tokens, 2 are needed", code="InvalidArgument", path="text")
    every = np.concatenate(losses)
    loss = float(every.mean())
    return Perplexity(math.exp(loss), math.exp(loss) * float(every.std()) / math.sqrt(len(every)), loss, len(every))


def _losses(logits: np.ndarray, tokens: list[int]) -> np.ndarray:
    x = logits[:-1].astype(np.float64)
    x -= x.max(-1, keepdims=True)
    return np.log(np.exp(x).sum(-1)) - x[np.arange(len(x)), tokens[1:]]
