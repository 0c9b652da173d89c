# SPDX-License-Identifier: Apache-2.0
"""Names of inputs and outputs: every one once, or the reader refuses the file."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import pumice
from pumice.lowering.lower import _unique


class Alike(nn.Module):
    def forward(self, a):
        y = a["b"]["c"] + a["b.c"]
        return {"a": {"b": y}, "a.b": y, "": y * 2, "output": y * 3, 0: y + 1, "0": y + 2}


def test_every_name_is_there_once(e2e) -> None:
    program = e2e.check(Alike(), {"b": {"c": torch.tensor([1.0, 2.0])}, "b.c": torch.tensor([5.0, 7.0])})
    method = program.ir.methods[0]
    assert [method.values[index].name for index in method.inputs] == ["a.b.c", "a.b.c_2"]
    names = [method.values[index].name for index in method.outputs]
    assert names == ["a.b", "a.b_2", "output", "output_2", "output.0", "output.0_2"]
    pumice.check(bytes(program))


def test_a_value_that_is_a_result_twice_has_two_names(e2e) -> None:
    class Twice(nn.Module):
        def forward(self, x):
            y = x + 1
            return y, y, {"y": y}

    method = e2e.check(Twice(), torch.ones(3)).ir.methods[0]
    assert [method.values[index].name for index in method.outputs] == ["output.0", "output.1", "output.2.y"]


@pytest.mark.parametrize(
    ("names", "unique"),
    [
        (["a", "b"], ["a", "b"]),
        (["a", "a", "a"], ["a", "a_2", "a_3"]),
        (["a", "a", "a_2"], ["a", "a_3", "a_2"]),
        (["a_2", "a", "a", "a_2"], ["a_2", "a", "a_3", "a_2_2"]),
    ],
)
def test_what_is_added_to_a_name(names, unique) -> None:
    assert _unique(names) == unique
