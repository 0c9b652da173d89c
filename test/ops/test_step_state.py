# SPDX-License-Identifier: Apache-2.0
"""What a step takes over from the one before and leaves to the next: several steps a submit, against eager."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import pumice
import pumice.llm.step_state

COLUMNS = 4


class Steps(nn.Module):
    """The token of a step is the sum of its token and its position."""

    def __init__(self) -> None:
        super().__init__()
        for name, shape in (("made", (3, COLUMNS)), ("token", (3, 1)), ("step", (1,))):
            self.register_buffer(name, torch.zeros(shape, dtype=torch.int64))

    def forward(self, tokens: torch.Tensor, first: torch.Tensor, steps: torch.Tensor) -> torch.Tensor:
        token, position = torch.ops.pumice.step_inputs(tokens, first, self.token, self.step)
        chosen = token + position[:, None]
        made, token, step = torch.ops.pumice.step_outputs(self.made, self.token, self.step, chosen, steps)
        self.made.copy_(made)
        self.token.copy_(token)
        self.step.copy_(step)
        return made


def inputs(steps: int) -> tuple[torch.Tensor, ...]:
    return torch.tensor([[5], [7], [9]]), torch.tensor([10, 20, 30]), torch.tensor([steps])


@pytest.fixture(scope="module")
def program() -> pumice.Program:
    program = pumice.export(Steps(), inputs(2))
    assert program.report.operators["step_inputs"] == program.report.operators["step_outputs"] == 1
    return program


@pytest.mark.parametrize("features", [None, "none"])
def test_calls_of_several_steps_are_those_of_eager(program, features) -> None:
    session, eager = pumice.load(bytes(program), features=features), Steps()
    for steps in (COLUMNS, 1, 3, 2):
        with torch.no_grad():
            want = [eager(*inputs(steps)) for _ in range(steps)][-1]
        assert torch.equal(session.run(*inputs(steps), steps=steps), want)


def test_a_step_too_many_is_an_error(program) -> None:
    session = pumice.load(bytes(program))
    with pytest.raises(pumice.InvalidInputError, match=r"index 4 .* outside 0\.\.3"):
        session.run(*inputs(9), steps=COLUMNS + 1)
    eager = Steps()
    with pytest.raises(IndexError, match=f"{COLUMNS}"):
        for _ in range(COLUMNS + 1):
            eager(*inputs(9))
