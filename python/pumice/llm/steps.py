# SPDX-License-Identifier: Apache-2.0
"""Tokens chosen on the device: several steps run in one submit, each on the token before."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

import pumice.llm.sample_token  # noqa: F401 (registers the operator)
from pumice.llm.decoder import Decoder

RING = 64  # steps that one call may have


class Steps(Decoder):
    """A decoder that shares the weights and caches of another one, by their names, and has a step's own states."""

    def __init__(self, decoder: Decoder) -> None:
        nn.Module.__init__(self)
        self.__dict__.update(decoder.__dict__)
        self._buffers = dict(decoder._buffers)
        self.rows = "last"
        batch = self.keys_0.shape[0]
        self.register_buffer("token", torch.zeros(batch, 1, dtype=torch.int64), persistent=False)
        self.register_buffer("made", torch.zeros(batch, RING, dtype=torch.int64), persistent=False)
        self.register_buffer("step", torch.zeros(1, dtype=torch.int64), persistent=False)

    def logits(self, tokens: Tensor, first: Tensor) -> Tensor:
        """Of this step: [B, V]. tokens [B, 1]: the last ones before the call; first [B]: their positions."""
        token = torch.where(self.step == 0, tokens, self.token)
        return Decoder.forward(self, token, first + self.step)

    def take(self, chosen: Tensor, steps: Tensor) -> Tensor:
        """Ends the step with the token [B, 1] for each sequence; made [B, RING]."""
        self.made.index_copy_(1, self.step, chosen)
        self.token.copy_(chosen)
        after = self.step + 1
        self.step.copy_(torch.where(after < steps, after, 0))
        return self.made.clone()


class Greedy(Steps):
    """The most probable token."""

    def forward(self, tokens: Tensor, first: Tensor, steps: Tensor) -> Tensor:
        """One of the `steps` [1], 1 to RING, that a call runs with the same inputs.

        tokens [B, 1]: the last tokens, which are not yet in the caches; first [B]: their positions. All int64. Returns
        made [B, RING], whose first `steps` columns are the new tokens when all steps have run.
        """
        return self.take(argmax(self.logits(tokens, first)), steps)


class Sampled(Steps):
    """A token drawn as pumice::sample_token does, whose options, counts and text [B, max_seq] these are."""

    def forward(
        self, tokens: Tensor, first: Tensor, steps: Tensor, text: Tensor, options: Tensor, counts: Tensor
    ) -> Tensor:
        """As Greedy.forward. text has the tokens up to those at `first`, by position."""
        logits = self.logits(tokens, first)
        position = first + self.step + 1
        chosen = torch.ops.pumice.sample_token(logits, options, counts, text, self.made, position, self.step)
        return self.take(chosen, steps)


def argmax(x: Tensor) -> Tensor:
    """The index of the largest element of each row of x [B, N], as [B, 1]; the first of equal ones. In two steps, over
    parts of a row and then over their maxima: a reduction has one workgroup for each row, too few for a vocabulary."""
    batch, size = x.shape
    parts = next(part for part in range(math.isqrt(size), 0, -1) if size % part == 0)
    divided = x.view(batch, parts, size // parts)
    part = divided.amax(-1).argmax(-1, keepdim=True)
    return part * (size // parts) + divided.argmax(-1).gather(1, part)
