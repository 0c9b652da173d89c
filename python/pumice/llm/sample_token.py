# SPDX-License-Identifier: Apache-2.0
"""`pumice::sample_token`: a token drawn from logits, as one operator of an exported graph.

In eager mode llm/sampling.py draws it: the definition, with which the device's kernels agree token for token.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from pumice.llm.sampling import Sampling, next_token


@torch.library.custom_op("pumice::sample_token", mutates_args=())
def sample_token(
    logits: Tensor,
    options: Tensor,
    counts: Tensor,
    text: Tensor,
    made: Tensor,
    token: Tensor,
    position: Tensor,
    step: Tensor,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Draws the token that comes after position [B] of each sequence; returns what the next step starts with: made with
    the drawn tokens in column `step`, they alone, position + 1, step + 1.

    logits [B, V], f32 or f16; options [B, 4], f32: temperature, top_p, min_p, repeat_penalty; counts [B, 4], int32:
    top_k, repeat_last, low and high word of the seed. token [B, 1] is at `position`. The tokens up to there: the last
    `step` [1] of them are the first of a row of made [B, R], those before are text [B, S], by position; both are read
    only where they may be repeated. All int64. Raises InvalidInputError for an option out of its range and for a row
    without a number, IndexError for a token before that is not in the vocabulary and for a step that is not in 0..R-1.
    """
    new = int(step)
    if not 0 <= new < made.shape[1]:
        raise IndexError(f"step {new} of a call that has up to {made.shape[1]}")
    tokens = []
    for row, x in enumerate(logits.float().numpy()):
        temperature, top_p, min_p, penalty = (float(value) for value in options[row])
        top_k, repeat_last, *seed = (int(value) for value in counts[row])
        low, high = (word % 2**32 for word in seed)
        how = Sampling(temperature, top_k, top_p, min_p, penalty, repeat_last, low | high << 32)
        end = int(position[row]) + 1
        before = torch.cat((text[row, : end - new], made[row, :new]))
        repeated = before[-repeat_last:] if penalty != 1 and repeat_last else before[:0]
        if wrong := [int(token) for token in repeated if not 0 <= token < len(x)]:
            raise IndexError(f"token {wrong[0]} is not in the vocabulary of {len(x)}")
        tokens.append(next_token(x, how, end, np.asarray(before)))
    drawn = torch.tensor(tokens, dtype=torch.int64)[:, None]
    return made.index_copy(1, step, drawn), drawn, position + 1, step + 1


@sample_token.register_fake
def _(logits, options, counts, text, made, token, position, step):
    return tuple(torch.empty_like(x) for x in (made, token, position, step))
