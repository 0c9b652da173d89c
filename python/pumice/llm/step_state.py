# SPDX-License-Identifier: Apache-2.0
"""`pumice::step_inputs` and `pumice::step_outputs`: what a step that chooses a token takes over from the step before
and leaves to the next one, as operators of an exported graph. The bodies are the definition."""

from __future__ import annotations

import torch
from torch import Tensor


@torch.library.custom_op("pumice::step_inputs", mutates_args=())
def step_inputs(tokens: Tensor, first: Tensor, token: Tensor, step: Tensor) -> tuple[Tensor, Tensor]:
    """The tokens [B, 1] that step number `step` [1] reads, and their positions [B]; all int64.

    tokens [B, 1], first [B]: the inputs of the call, which has several steps; token [B, 1]: chosen by the step before.
    """
    return torch.where(step == 0, tokens, token), first + step


@step_inputs.register_fake
def _(tokens, first, token, step):
    return torch.empty_like(tokens), torch.empty_like(first)


@torch.library.custom_op("pumice::step_outputs", mutates_args=())
def step_outputs(
    made: Tensor, token: Tensor, step: Tensor, chosen: Tensor, steps: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """`made` [B, R] with the token chosen [B, 1] in column `step` [1]; `token` [B, 1], which becomes the one chosen;
    and the number of the next step, 0 after the last of `steps` [1]. All int64. Raises IndexError for a step that is
    not in 0..R-1.
    """
    if not 0 <= int(step) < made.shape[1]:
        raise IndexError(f"step {int(step)} of a call that has up to {made.shape[1]}")
    after = step + 1
    return made.index_copy(1, step, chosen), chosen.clone(), torch.where(after < steps, after, 0)


@step_outputs.register_fake
def _(made, token, step, chosen, steps):
    return torch.empty_like(made), torch.empty_like(token), torch.empty_like(step)
