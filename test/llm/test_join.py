# SPDX-License-Identifier: Apache-2.0
"""Programs of one module as one file: shared constants and states, and what must not be shared."""

from __future__ import annotations

import pytest
import torch

import pumice
from pumice.format.join import join
from pumice.lowering.program import Program


class Counter(torch.nn.Module):
    """A weight, a state, and a constant that is folded under the same name in both forms."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(8, 8)
        self.register_buffer("total", torch.ones(1, 8))
        self.factor = 2.0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.linear(x) * torch.full((1, 8), self.factor)
        self.total.add_(y)
        return y + self.total


def lowered(module: Counter, factor: float) -> pumice.Program:
    module.factor = factor
    return pumice.export(module, (torch.zeros(1, 8),))


def test_methods_share_weights_and_state_but_not_what_differs() -> None:
    torch.manual_seed(0)
    module, x = Counter(), torch.randn(1, 8)
    programs = {"double": lowered(module, 2.0).ir, "triple": lowered(module, 3.0).ir}
    joined = join(programs)
    assert [state.key for state in joined.states] == ["total"]
    assert sum(constant.key == "linear.weight" for constant in joined.constants) == 1
    session = pumice.load(bytes(Program(joined, None)))
    double, triple = session.method("double"), session.method("triple")
    want = torch.ones(1, 8)
    with torch.no_grad():
        for factor, method in ((2.0, double), (3.0, triple), (2.0, double)):
            y = module.linear(x) * factor
            want = want + y
            torch.testing.assert_close(method(x), y + want, atol=1e-5, rtol=0)


def test_states_that_begin_differently_are_refused() -> None:
    module = Counter()
    first = lowered(module, 2.0).ir
    module.total.zero_()
    with pytest.raises(pumice.InvalidInputError, match="'total' starts with different values"):
        join({"a": first, "b": lowered(module, 2.0).ir})


def test_only_programs_of_one_method_are_joined() -> None:
    program = lowered(Counter(), 2.0).ir
    program.methods = []
    with pytest.raises(pumice.InvalidInputError, match="with 0 methods"):
        join({"a": program})
