# SPDX-License-Identifier: Apache-2.0
"""Tokens chosen on the device: several steps in one submit, each on the token before; or after guessed tokens."""

from __future__ import annotations

import torch
from torch import Tensor, nn

import pumice.llm.sample_token
import pumice.llm.step_state  # noqa: F401 (both register operators)
from pumice.llm.decoder import Decoder

RING = 64  # steps that one call may have


class _Shared(Decoder):
    """A decoder that shares the weights and caches of another one, by their names."""

    def __init__(self, decoder: Decoder, rows: str) -> None:
        nn.Module.__init__(self)
        self.__dict__.update(decoder.__dict__)
        self._buffers = dict(decoder._buffers)
        self.rows = rows


class Steps(_Shared):
    """It has a step's own states."""

    def __init__(self, decoder: Decoder) -> None:
        super().__init__(decoder, "last")
        batch = self.keys_0.shape[0]
        self.register_buffer("token", torch.zeros(batch, 1, dtype=torch.int64), persistent=False)
        self.register_buffer("made", torch.zeros(batch, RING, dtype=torch.int64), persistent=False)
        self.register_buffer("step", torch.zeros(1, dtype=torch.int64), persistent=False)

    def forward(
        self, tokens: Tensor, first: Tensor, steps: Tensor, text: Tensor, options: Tensor, counts: Tensor
    ) -> Tensor:
        """One of the `steps` [1], 1 to RING, that a call runs with the same inputs.

        tokens [B, 1]: the last tokens, which are not yet in the caches; first [B]: their positions; text [B, max_seq]:
        the tokens up to those at `first`, by position. All int64. options, counts: as of pumice::sample_token, which
        draws. Returns made [B, RING], whose first `steps` columns are the new tokens when all steps have run.
        """
        token, position = torch.ops.pumice.step_inputs(tokens, first, self.token, self.step)
        logits = Decoder.forward(self, token, position)
        chosen = torch.ops.pumice.sample_token(logits, options, counts, text, self.made, position + 1, self.step)
        made, token, step = torch.ops.pumice.step_outputs(self.made, self.token, self.step, chosen, steps)
        self.made.copy_(made)
        self.token.copy_(token)
        self.step.copy_(step)
        return made


class Check(_Shared):
    """Draws the token after each of some tokens, of which all but the first are guesses (llm/prompt_lookup.py)."""

    def __init__(self, decoder: Decoder) -> None:
        super().__init__(decoder, "all")

    def forward(self, tokens: Tensor, first: Tensor, text: Tensor, options: Tensor, counts: Tensor) -> Tensor:
        """tokens [B, n]: the last token and guesses of those after it, none of them in the caches; first [B]: the
        positions of the first ones; text [B, max_seq]: the tokens and guesses by position. All int64. options, counts:
        as of pumice::sample_token.

        Returns [B, n], int64: the token that comes after tokens[:, : i + 1], each drawn as `Steps` draws it.
        """
        batch, count = tokens.shape
        logits = Decoder.forward(self, tokens, first)

        def repeated(x: Tensor) -> Tensor:
            return x[:, None].expand(batch, count, x.shape[-1]).reshape(batch * count, x.shape[-1])

        before = repeated(text)
        positions = (first[:, None] + torch.arange(1, count + 1)).reshape(-1)
        drawn = torch.ops.pumice.sample_token(
            logits.reshape(batch * count, -1),
            repeated(options),
            repeated(counts),
            before,
            before,
            positions,
            torch.zeros(1, dtype=torch.int64),
        )
        return drawn.reshape(batch, count)


class Copy(_Shared):
    """Copies the caches of sequences to others."""

    def __init__(self, decoder: Decoder) -> None:
        super().__init__(decoder, "all")

    def forward(self, rows: Tensor) -> Tensor:
        """rows [B], int64: whose caches each row takes, as all were before the call. Returns rows."""
        for caches in self._buffers.values():
            caches.copy_(caches.index_select(0, rows))
        return rows + 0
