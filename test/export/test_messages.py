# SPDX-License-Identifier: Apache-2.0
"""Refusals and wrong arguments: each message says what is wrong in the words of the user's model, and what to do."""

from __future__ import annotations

import sys

import pytest
import torch
from support.graphs import Function
from torch import nn

import pumice
from pumice.lowering import registry
from pumice.lowering.instead import ELSE, INSTEAD, instead
from pumice.ops import binary  # noqa: F401 (importing one fills the table of lowerings)

X = torch.randn(4, 6, generator=torch.Generator().manual_seed(0))


def branch(x):
    return x + 1 if x.sum() > 0 else x - 1


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: x * x.sum().item(), r"read from a tensor \(\.item\(\), .*keep it a tensor"),
        (lambda x: x.reshape(x.long().abs().sum().item(), -1), "a tensor"),
        (branch, r"test_messages\.py:22: the model decides by the value of a tensor; instead keep it a tensor"),
        (lambda x: torch.polar(x, x).sqrt().abs(), "sqrt.default: .* take torch.view_as_real"),
        (lambda x: torch.linalg.inv(x[:, :4]), "has an effect outside of its results"),
        (lambda x: torch.fft.rfft(x.repeat(1, 2000)).abs(), "of a fixed length of 1 to 2048 elements"),
        (lambda x: x.nonzero(), "shape that depends on values"),
        (lambda x: torch.cond(x.sum() > 0, lambda y: y + 1, lambda y: y - 1, (x,)), "torch.where"),
        (lambda x: torch.igamma(x, x), "^1 node of the model cannot run"),
        (lambda x: (torch.igamma(x, x), torch.igammac(x, x)), "^2 nodes of the model cannot run"),
    ],
)
def test_a_refusal_says_what_to_do(function, message, capsys) -> None:
    with pytest.raises(pumice.UnsupportedError, match=message) as caught:
        pumice.export(Function(function), (X,))
    assert "def forward" not in capsys.readouterr().err  # the graph that torch.export was at
    assert not any(word in str(caught.value) for word in ("zuf0", "TOKEN"))


def test_what_the_model_says_on_stderr_stays(capsys) -> None:
    def talks(x):
        print("hello", file=sys.stderr)
        return x[: int(x.sum().item())]

    with pytest.raises(pumice.UnsupportedError):
        pumice.export(Function(talks), (X,))
    assert capsys.readouterr().err.strip() == "hello"


def test_an_error_names_no_line_of_python_itself() -> None:
    with pytest.raises(pumice.UnsupportedError, match="could not capture ReLU: got an unexpected keyword"):
        pumice.export(nn.ReLU(), (X,), {"dynamic_shapes": {}})


def test_a_dynamic_size_that_torch_cannot_prove() -> None:
    class Windows(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.stft(x, 64, 16, window=torch.ones(64), return_complex=True).abs()

    with pytest.raises(pumice.UnsupportedError, match=r"as a multiple \(16 \* torch\.export\.Dim"):
        pumice.export(Windows(), (torch.randn(2, 400),), dynamic_shapes={"x": {1: torch.export.Dim("n", min=64)}})


def test_a_model_in_training_mode() -> None:
    for layer in (nn.Dropout(), nn.RReLU()):
        with pytest.raises(pumice.UnsupportedError, match=r"call model\.eval\(\)"):
            pumice.export(nn.Sequential(nn.Linear(6, 6), layer), (X,))
    assert pumice.export(nn.Sequential(nn.Linear(6, 6), nn.Dropout(), nn.BatchNorm1d(6)).eval(), (X,))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (lambda x: x + 1, r"a function \(<lambda>\) .* torch.nn.Module whose forward calls it"),
        (branch, r"a function \(branch\)"),
        (nn.ReLU, "ReLU is a class: export an instance"),
        (3, "got int"),
    ],
)
def test_what_is_no_model(given, message) -> None:
    with pytest.raises(pumice.InvalidInputError, match=message):
        pumice.export(given, (X,))


def test_results_that_torch_names_are_named_tuples() -> None:
    result = pumice.load(bytes(pumice.export(Function(lambda x: torch.max(x, 1)), (X,))))(X)
    assert type(result).__name__ == "max" and all(map(torch.equal, result, X.max(1))) and result.indices is result[1]


def test_wrong_arguments_of_load() -> None:
    data = bytes(pumice.export(nn.ReLU(), (X,)))
    for wrong, message in (({"features": ["-coopmat"]}, "features must be text"), ({"device": 0.5}, "device must be")):
        with pytest.raises(pumice.InvalidInputError, match=message):
            pumice.load(data, **wrong)


def test_the_nearest_names_of_an_unknown_one() -> None:
    with pytest.raises(pumice.InvalidInputError, match=r"'int3'; did you mean 'int4' or 'int8'\? known: 8da4w, 8da8w"):
        pumice.quantize(nn.Linear(64, 5), "int3")


def test_every_piece_of_advice_is_for_an_operator_that_torch_has_and_pumice_lacks() -> None:
    lowered = {str(target).split(".")[1].strip("_") for target in registry.targets() if "." in str(target)}
    for name in INSTEAD:
        aten = any(hasattr(torch.ops.aten, each) for each in (name, f"_{name}"))
        assert aten or hasattr(torch.ops.higher_order, name), name
        assert name not in lowered, f"{name} runs: advice is not needed"
    assert instead(torch.ops.aten.polar.default) == INSTEAD["polar"] and instead("some.thing.default") == ELSE


def test_a_batch_norm_in_training_mode_is_noted() -> None:
    model, x = nn.Sequential(nn.Linear(6, 6), nn.BatchNorm1d(6)), X
    (note,) = pumice.export(model, (x,)).report.notes
    assert "'1' the first" in note and "model.eval()" in note
    assert pumice.export(model.eval(), (x,)).report.notes == []
