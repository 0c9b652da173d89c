# SPDX-License-Identifier: Apache-2.0
"""What a model writes into its inputs is there in the next step of the same call: against eager, called as often."""

from __future__ import annotations

import pytest
import torch

import pumice

X = torch.randn(3, 7, generator=torch.Generator().manual_seed(1))
Y = torch.randn(3, 7, generator=torch.Generator().manual_seed(2))


def in_place(x, y):
    return x.copy_(torch.tanh(x) + y) * 2


def read_later(x, y):
    new = torch.tanh(x) + y
    out = new * x
    x.copy_(new)
    return out


def swap(x, y):
    old = x.clone()
    x.copy_(y)
    y.copy_(old * 0.5)
    return x + 2 * y


def old_value(x, y):
    old = x.clone()
    x.add_(y)
    return old


def new_value(x, y):
    x.mul_(0.5).add_(y)
    return x.clone()


def from_the_other(x, y):
    x.copy_(y)
    return torch.relu(x)


def matmul(x, y):
    x.copy_(torch.softmax(x @ y.T, -1) @ x)
    return x + 1


MODELS = (in_place, read_later, swap, old_value, new_value, from_the_other, matmul)


class Model(torch.nn.Module):
    def __init__(self, function) -> None:
        super().__init__()
        self.function = function

    def forward(self, x, y):
        return self.function(x, y)


def want(function, steps: int, *inputs: torch.Tensor) -> torch.Tensor:
    inputs = [x.clone() for x in inputs]
    return [function(*inputs).clone() for _ in range(steps)][-1]


@pytest.mark.parametrize("options", [{}, {"storage": "texture"}], ids=["buffer", "texture"])
@pytest.mark.parametrize("features", [None, "none", "submit_us=1"])
@pytest.mark.parametrize("function", MODELS)
def test_steps_are_eagers_calls_with_the_same_tensors(function, features, options) -> None:
    program = pumice.export(Model(function), (X.clone(), Y.clone()), options={"input_updates": True} | options)
    assert program.ir.required_features == ["input_updates"]
    assert any("for the next step" in note for note in program.report.notes)
    session = pumice.load(bytes(program), features=features)
    for steps in (1, 4, 2, 33):
        x, y = X.clone(), Y.clone()
        torch.testing.assert_close(session.run(x, y, steps=steps), want(function, steps, X, Y), rtol=1e-5, atol=1e-5)
        assert torch.equal(x, X)
        assert torch.equal(y, Y)


def test_sizes_known_at_run_time() -> None:
    rows = torch.export.Dim("rows", min=1, max=9)
    shapes = ({0: rows}, {0: rows})
    program = pumice.export(
        Model(read_later), (X.clone(), Y.clone()), dynamic_shapes=shapes, options={"input_updates": True}
    )
    session = pumice.load(bytes(program))
    for count in (1, 8, 3):
        x, y = torch.randn(count, 7), torch.randn(count, 7)
        torch.testing.assert_close(session.run(x, y, steps=5), want(read_later, 5, x, y), rtol=1e-5, atol=1e-5)


def test_integers_and_a_state_beside() -> None:
    class Counter(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("seen", torch.zeros(2, 5, dtype=torch.int64))

        def forward(self, token, step):
            self.seen.copy_(self.seen.index_copy(1, step, token))
            token.add_(step)
            step.add_(1)
            return self.seen + 0

    token, step = torch.tensor([[3], [5]]), torch.tensor([0])
    session = pumice.load(bytes(pumice.export(Counter(), (token, step), options={"input_updates": True})))
    eager = Counter()
    for steps in (5, 1, 3):
        a, b = token.clone(), step.clone()
        made = [eager(a, b) for _ in range(steps)][-1]
        assert torch.equal(session.run(token, step, steps=steps), made)


def test_it_must_be_asked_for() -> None:
    with pytest.raises(pumice.UnsupportedError, match=r"writes into its input 'x'.*input_updates"):
        pumice.export(Model(in_place), (X.clone(), Y.clone()))
    with pytest.raises(pumice.InvalidInputError, match="input_updates: True or False, not 1"):
        pumice.ExportOptions(input_updates=1)
