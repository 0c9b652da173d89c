# SPDX-License-Identifier: Apache-2.0
"""Tokens chosen on the device: several steps in one submit, each on the token before; or after guessed tokens."""

from __future__ import annotations

import torch
from torch import Tensor, nn

import pumice.llm.sample_token  # noqa: F401 (registers the operator)
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
    """It has the tokens of a call as a state."""

    def __init__(self, decoder: Decoder) -> None:
        super().__init__(decoder, "last")
        batch = self.keys_0.shape[0]
        self.register_buffer("made", torch.zeros(batch, RING, dtype=torch.int64), persistent=False)

    def forward(
        self, token: Tensor, position: Tensor, step: Tensor, text: Tensor, options: Tensor, counts: Tensor
    ) -> Tensor:
        """A step, 0 to RING - 1, of a call; writes what the next one starts with into the first three inputs.

        token [B, 1]: the last tokens, which are not yet in the caches; position [B]: theirs; step [1]: 0 in the first
        one; text [B, max_seq]: the tokens up to those at `position` in the first step, by position. All int64.
        options, counts: as of pumice::sample_token, which draws. Returns made [B, RING], whose first `step` + 1 columns
        are the new tokens.
        """
        logits = Decoder.forward(self, token, position)
        drawn = torch.ops.pumice.sample_token(logits, options, counts, text, self.made, token, position, step)
        for old, new in zip((self.made, token, position, step), drawn, strict=True):
            old.copy_(new)
        return drawn[0]


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

        made, *_ = torch.ops.pumice.sample_token(
            logits.reshape(batch * count, -1),
            repeated(options),
            repeated(counts),
            repeated(text),
            torch.zeros(batch * count, 1, dtype=torch.int64),
            tokens.reshape(batch * count, 1),
            (first[:, None] + torch.arange(count)).reshape(-1),
            torch.zeros(1, dtype=torch.int64),
        )
        return made.reshape(batch, count)


class Copy(_Shared):
    """Copies the caches of sequences to others."""

    def __init__(self, decoder: Decoder) -> None:
        super().__init__(decoder, "all")

    def forward(self, rows: Tensor) -> Tensor:
        """rows [B], int64: whose caches each row takes, as all were before the call. Returns rows."""
        for caches in self._buffers.values():
            caches.copy_(caches.index_select(0, rows))
        return rows + 0
