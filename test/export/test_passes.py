# SPDX-License-Identifier: Apache-2.0
"""normalize and fold, on small graphs."""

from __future__ import annotations

import pytest
import torch
from support.graphs import decomposed, live, normalized
from support.many import Many
from torch import nn

import pumice
from pumice.lowering.folding import Constants

X = torch.randn(4, 6, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.clone() + 1,
        lambda x: x.contiguous() + 1,
        lambda x: x.detach() + 1,
        lambda x: x.to(torch.float32) + 1,
        lambda x: x.view(4, -1) + 1,
        lambda x: x.reshape(4, 6) + 1,
        lambda x: x.expand(4, -1) + 1,
        lambda x: x[:, 0:6] + 1,
        lambda x: x.permute(0, 1) + 1,
        lambda x: torch.cat([x]) + 1,
        lambda x: nn.functional.dropout(x, 0.3, training=False) + 1,
    ],
)
def test_identities_vanish(function) -> None:
    program, removed = normalized(function, X)
    assert live(program, removed) == ["add"]
    (add,) = (node for node in program.graph.nodes if "add" in str(node.target))
    assert add.args[0].op == "placeholder"


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.to(torch.float16),
        lambda x: x.view(6, 4),
        lambda x: x.expand(2, 4, 6),
        lambda x: x[:, 0:5],
        lambda x: x[:, ::2],
        lambda x: x.permute(1, 0),
        lambda x: x + 0.0,  # -0.0 + 0.0 is 0.0
        lambda x: x.to(torch.int64) + 0.5,
    ],
)
def test_what_computes_something_stays(function) -> None:
    program, removed = normalized(function, X)
    assert live(program, removed)


def test_a_file_has_nothing_of_the_memory_of_its_writer() -> None:
    """With deterministic algorithms torch fills what is empty with NaN, the largest integer or True."""
    functions = [
        lambda x, d=d, make=make: make(x, d)
        for d in (torch.float32, torch.int64, torch.bool)
        for make in (
            lambda x, d: torch.empty(3, 5, dtype=d),
            lambda x, d: x.new_empty((7,), dtype=d),
            lambda x, d: torch.empty_like(x, dtype=d),
            lambda x, d: torch.empty_strided((2, 3), (1, 2), dtype=d),
        )
    ]
    torch.use_deterministic_algorithms(True)
    try:
        got = pumice.load(bytes(pumice.export(Many(functions), (X,))))(X)
    finally:
        torch.use_deterministic_algorithms(False)
    assert not any(result.any() for result in got)


def test_equal_nodes_become_one_and_different_scalars_do_not() -> None:
    program, removed = normalized(lambda x: (x.exp() + 1) * (x.exp() + 1), X)
    assert live(program, removed) == ["exp", "add", "mul"]
    program, removed = normalized(lambda x: (x + 1, x + 1.0, x + True), X.long())
    assert live(program, removed).count("add") == 3


def test_random_numbers_are_not_merged_or_folded() -> None:
    program, removed = normalized(lambda x: torch.rand(3) + torch.rand(3) + x[0, 0], X)
    assert live(program, removed).count("rand") == 2
    constants = Constants(program)
    assert not any(node in constants for node in program.graph.nodes if "rand" in str(node.target))


def test_dead_code_and_assertions_are_told_apart() -> None:
    def function(x):
        x.exp()
        return x.to(torch.int64) + 1

    _, removed = normalized(function, X)
    assert {str(node.target): why for node, why in removed.items() if "exp" in str(node.target)} in (
        {},
        {"aten.exp.default": ""},
    )
    assert all("assertion" in why for node, why in removed.items() if "_assert" in str(node.target))


class Weights(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(6, 3))
        self.register_buffer("table", torch.arange(12.0), persistent=False)

    def forward(self, x):
        mask = torch.ones(4, 4).tril() > 0
        return (
            x @ (self.weight * 2).t().reshape(6, 3),
            self.table.view(3, 4).sum(0),
            mask,
            torch.full((4096, 4096), 1.0),
        )


def test_what_depends_on_constants_only_is_one() -> None:
    module = Weights()
    program = decomposed(module, X)
    constants = Constants(program)
    results = next(node for node in program.graph.nodes if node.op == "output").args[0]
    assert results[0] not in constants
    assert results[1] in constants and results[2] in constants
    assert results[3] not in constants, "64 MiB of ones are not written into the file"
    torch.testing.assert_close(constants.value(results[1]), module.table.view(3, 4).sum(0))
    assert torch.equal(constants.value(results[2]), torch.ones(4, 4).tril() > 0)
    factor = next(node for node in results[0].all_input_nodes if node.name != "x")
    assert factor in constants
    torch.testing.assert_close(constants.value(factor).reshape(6, 3), (module.weight.detach() * 2).t().reshape(6, 3))


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(6, 6, bias=False), nn.Linear(6, 6, bias=False)
        self.b.weight = self.a.weight
        self.c = nn.Parameter(self.a.weight.detach())  # another name of the same storage

    def forward(self, x):
        return self.a(x) + self.b(x) + nn.functional.linear(x, self.c)


def test_tied_weights_have_one_key() -> None:
    program = decomposed(Tied(), X)
    constants = Constants(program)
    used = [node for node in program.graph.nodes if node.op == "placeholder" and node in constants and node.users]
    assert len({constants.key(node) for node in used}) == 1


class Counter(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.tensor([3]))

    def forward(self, x):
        self.count.add_(1)
        return x + self.count


def test_a_mutated_buffer_is_state_not_a_constant() -> None:
    program = decomposed(Counter(), X)
    constants = Constants(program)
    assert [name for name, _ in constants.states.values()] == ["count"]
    assert not any(node in constants for node in program.graph.nodes)


class Permuted(nn.Module):
    """Windows of a relative position bias, as in Swin: the copy after a permutation goes out of the graph."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.randn(4, 3, 5, generator=torch.Generator().manual_seed(1)))

    def forward(self, x):
        bias = self.table.permute(2, 0, 1).contiguous()
        return x + bias.view(-1), x.view(5, 12) + bias.view(5, 12), x.long() + bias.view(torch.int32).view(-1)


def test_a_constant_of_permuted_strides_is_folded(e2e) -> None:
    e2e.check(Permuted(), torch.randn(60, generator=torch.Generator().manual_seed(0)), reference="eager")
