# SPDX-License-Identifier: Apache-2.0
"""float64: refused by name, or computed in f32 where ExportOptions(float64="as_float32") says so."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from support.budget import EXP, ULP
from support.many import Many, normal

import pumice

AS_F32 = {"float64": "as_float32"}
NOTE = "float64 tensors, inputs and results included, are f32 on the device"


class AddsPositions(torch.nn.Module):
    """As RT-DETR does: numpy made the constant, so that it is float64, and so is the sum."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)
        self.positions = torch.from_numpy(np.sin(np.arange(12.0)).reshape(3, 4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear((x + self.positions).float())


def test_a_constant(e2e) -> None:
    e2e.refuses(AddsPositions(), normal(3, 4), match=r"float64 .*option float64='as_float32' computes")
    module = AddsPositions().eval()
    x = normal(3, 4)
    program = pumice.export(module, (x,), options=AS_F32)
    assert NOTE in program.report.notes
    want = module(x)
    assert (pumice.load(bytes(program))(x) - want).abs().max() <= 32 * ULP * want.abs().max()


def test_inputs_and_results() -> None:
    """Both become f32; so does what is between."""
    x = normal(5, 7).double()
    functions = [lambda x: x.exp(), lambda x: x.sum(0), lambda x: (x * 3).float(), lambda x: x.long().double() / 3,
                 lambda x: torch.where(x > 0, x, torch.zeros((), dtype=torch.float64)), lambda x: x.float().double(),
                 lambda x: torch.cat([x, x.new_full((1, 7), 2.5)]), lambda x: x.max(1), lambda x: x]  # fmt: skip
    program = pumice.export(Many(functions), (x,), options=AS_F32)
    got, want = pumice.load(bytes(program))(x.float()), Many(functions)(x)
    for a, b in zip(torch.utils._pytree.tree_leaves(got), torch.utils._pytree.tree_leaves(want), strict=True):
        assert a.dtype is (torch.float32 if b.is_floating_point() else b.dtype)
        assert ((a.double() - b).abs() <= EXP.rtol * b.abs() + 64 * ULP).all()
    assert NOTE in program.report.notes


def test_constants_are_folded_in_their_own_type(e2e) -> None:
    """In f32, 1 + 2^-40 is 1 and their difference nothing."""
    large = torch.tensor([1 + 2.0**-40, 1 + 2.0**-30], dtype=torch.float64)
    functions = [lambda x: x + ((large - 1) * 2.0**40).float()]
    for options in (None, AS_F32):
        program = pumice.export(Many(functions), (torch.zeros(2),), options=options)
        assert torch.equal(pumice.load(bytes(program))(torch.zeros(2))[0], torch.tensor([1.0, 1024.0]))
        assert options is not None or not program.report.notes


def test_an_unknown_choice_is_refused() -> None:
    with pytest.raises(pumice.InvalidInputError, match="float64"):
        pumice.ExportOptions(float64="f32")
