# SPDX-License-Identifier: Apache-2.0
"""Arguments that are no tensors are fixed at export: a call that means other ones is refused, never answered."""

from __future__ import annotations

import dataclasses
import json
import math
from typing import Any

import pytest
import torch
from torch import nn

import pumice
from pumice.runtime import nesting

X = torch.tensor([1.0, -2.0])


class Scale(nn.Module):
    def forward(self, x, scale=None, flag=True, *, mode="sum", shape=(1, [2])):
        y = x if scale is None else x * scale
        return (y + 1 if flag else y - 1) * (2 if mode == "sum" else 3) + shape[0]


def load(module: nn.Module, args: tuple, kwargs: dict[str, Any] | None = None) -> pumice.Session:
    return pumice.load(bytes(pumice.export(module, args, kwargs)))


def refused(match: str, session: pumice.Session, *args: Any, **kwargs: Any) -> None:
    for call in (session, session.profile):
        with pytest.raises(pumice.InvalidInputError, match=match) as caught:
            call(*args, **kwargs)
        assert caught.value.code == "InvalidArgument" and caught.value.stage == "input"


def test_left_out_or_different_is_refused_with_the_way_out() -> None:
    module = Scale()
    session = load(module, (X, 3.0), {"flag": False})
    want = module(X, 3.0, flag=False)
    for args, kwargs in [
        ((X, 3.0), {"flag": False}),
        ((X, 3.0, False), {}),
        ((), {"flag": False, "scale": 3.0, "x": X}),
        ((X, 3.0, False), {"mode": "sum", "shape": (1, [2])}),  # fixed to the defaults, which may be said
    ]:
        assert torch.equal(session(*args, **kwargs), want)
    refused(r"'scale' is missing: it was fixed to 3.0 at export and forward's default is None", session, X)
    refused("pass exactly 3.0, or export again", session, X, flag=False)
    refused(r"'flag' is missing: it was fixed to False at export and forward's default is True", session, X, 3.0)
    refused("'scale' was fixed to 3.0 at export, got 4.0; pass exactly 3.0", session, X, 4.0, False)
    refused("'scale' was fixed to 3.0 at export, got a Tensor", session, X, torch.tensor(3.0), False)
    refused("'scale' was fixed to 3.0 at export, got None", session, X, None, False)
    refused("'scale' was fixed to 3.0 at export, got False", session, X, False)  # by position it is not `flag`
    refused("'mode' was fixed to 'sum' at export, got 'mean'", session, X, 3.0, False, mode="mean")
    refused(r"'shape.0' was fixed to 1 at export, got 2", session, X, 3.0, False, shape=(2, [2]))
    refused("got 4 by position|got 4", session, X, 3.0, False, "sum")
    refused("unknown mood", session, X, 3.0, False, mood="sum")


def test_a_default_that_was_fixed_may_be_left_out() -> None:
    module = Scale()
    for args, kwargs in [((X,), {}), ((X, None, True), {}), ((X,), {"shape": (1, [2]), "mode": "sum"})]:
        session = load(module, args, kwargs)
        for call in [((X,), {}), ((X, None), {}), ((X, None, True), {}), ((X,), {"flag": True, "mode": "sum"})]:
            assert torch.equal(session(*call[0], **call[1]), module(X))
        refused("'flag' was fixed to True at export, got False", session, X, None, False)
        refused("'flag' was fixed to True at export, got 1;", session, X, None, 1)


@pytest.mark.parametrize("fixed", [0.0, -0.0, 1.0, math.nan, math.inf, -math.inf, 1, 0, True, False, "1", "", None])
def test_values_that_only_look_equal(fixed) -> None:
    class Takes(nn.Module):
        def forward(self, x, value):
            return x + 1

    session = load(Takes(), (X, fixed))
    session(X, fixed)
    for other in [0.0, -0.0, 1.0, math.nan, math.inf, -math.inf, 1, 0, True, False, "1", "", None, X]:
        if type(other) is type(fixed) and repr(other) == repr(fixed):
            continue
        refused("'value' was fixed to", session, X, other)


@dataclasses.dataclass
class Config:
    bias: torch.Tensor
    factor: float = 1.0
    mask: torch.Tensor | None = None


torch.export.register_dataclass(Config, serialized_type_name="test_fixed_arguments.Config")


def test_nested() -> None:
    class Nested(nn.Module):
        def forward(self, x, config, more, pair):
            y = x * config.factor + config.bias + more["list"][0]
            return y if config.mask is None else y * config.mask

    more = {"list": [X, 2, None], "flags": {"a": True}}
    args = (X, Config(X, 2.0), more, (1, (2.5, "s")))
    session = load(Nested(), args)
    want = Nested()(*args)
    assert torch.equal(session(*args), want)
    again = {"pair": (1, (2.5, "s")), "more": {"flags": {"a": True}, "list": [X, 2, None]}, "config": args[1], "x": X}
    assert torch.equal(session(**again), want)  # dicts are the same in any order
    refused("'config.factor' was fixed to 2.0", session, X, Config(X, 3.0), *args[2:])
    refused("'config.mask' was fixed to None", session, X, Config(X, 2.0, X), *args[2:])
    refused("'more.list.1' was fixed to 2", session, *args[:2], {**more, "list": [X, 2.0, None]}, args[3])
    refused("'more.list.2' was fixed to None", session, *args[:2], {**more, "list": [X, 2, X]}, args[3])
    refused("'more.flags.a' was fixed to True", session, *args[:2], {**more, "flags": {"a": 1}}, args[3])
    refused("'pair.1.0' was fixed to 2.5", session, *args[:3], (1, (2, "s")))
    refused(r"'pair' is missing: it was fixed to \(1, \(2.5, 's'\)\) at export", session, *args[:3])


def test_arguments_by_position_are_forwards_not_those_of_export() -> None:
    class Two(nn.Module):
        def forward(self, x, a=None, b=None):
            return x + (0 if a is None else a * 2) + (0 if b is None else b * 3)

    swapped = load(Two(), (X,), {"b": X, "a": X + 1})  # by name, in another order
    assert torch.equal(swapped(X, X + 1, X), Two()(X, X + 1, X))
    only_b = load(Two(), (X,), {"b": X})
    assert torch.equal(only_b(X, None, X), Two()(X, None, X))
    refused("'a' was fixed to None at export, got a Tensor", only_b, X, X, X)
    refused("'b' is missing|'a' was fixed to None", only_b, X, X)


def test_a_default_that_cannot_be_written_is_left_out() -> None:
    class Opaque(nn.Module):
        def forward(self, x, kind=torch.float32, table=torch.ones(2)):  # noqa: B008
            return x.to(kind) + table

    session = load(Opaque(), (X,))
    assert torch.equal(session(X), X + 1)
    refused("'kind' was left out at export, so forward's default is in the file", session, X, torch.float32)
    refused("'table' was left out at export", session, X, table=torch.ones(2))


def test_files_without_a_signature() -> None:
    """Of saved programs, and of older exports."""
    program = pumice.export(torch.export.export(Scale(), (X, 3.0), {"flag": False}))
    assert "defaults" not in json.loads(program.ir.methods[0].in_spec)
    session = pumice.load(bytes(program))
    assert torch.equal(session(X, 3.0, flag=False), Scale()(X, 3.0, flag=False))
    refused("'scale' is missing: it was fixed to 3.0 at export and the file has no default for it", session, X)
    refused("give 'flag' by name: the file does not say where forward takes them", session, X, 3.0, False)


def test_inspect_shows_what_is_fixed() -> None:
    class Takes(nn.Module):
        def forward(self, x, a, b, c=None, *, d="text"):
            return x + 1

    data = bytes(pumice.export(Takes(), (X, -0.0, {"n": [math.nan, -math.inf, "NaN"], "t": X})))
    assert pumice.inspect(data)["methods"][0]["fixed"] == [
        {"name": "a", "value": "-0.0"},
        {"name": "b.n.0", "value": "nan"},
        {"name": "b.n.1", "value": "-inf"},
        {"name": "b.n.2", "value": '"NaN"'},
        {"name": "c", "value": "None"},
        {"name": "d", "value": '"text"'},
    ]


@pytest.mark.parametrize(
    "text", ["*", "NaN", '{"t":' * 9000, "[" * 9000, '{"t":7,"names":3}', '{"t":[{"t":[{"c":[1]}]}]}']
)
def test_inspect_of_a_damaged_nesting(text) -> None:
    program = pumice.export(Scale(), (X,))
    program.ir.methods[0].in_spec = text
    assert isinstance(pumice.inspect(bytes(program))["methods"][0]["fixed"], list)


@pytest.mark.parametrize(
    "more",
    [
        {"positional": 7}, {"positional": [1]}, {"positional": [[]]}, {"positional": ["x", "x"]}, {"defaults": 7},
        {"defaults": [1]}, {"defaults": [["a", None]]}, {"defaults": [["a", {"t": [None]}]]},
        {"defaults": [[1, {"n": 1}]]},
        {"defaults": [["a", {"n": 1}], ["a", {"n": 1}]]}, {"defaults": [["a", {"x": 1}]]},
    ],
)  # fmt: skip
def test_a_damaged_signature(more) -> None:
    spec = {"t": [{"t": [None]}, {"d": []}], "names": ["x"]}
    assert nesting.parse_arguments(nesting.dump(spec), 1) == spec
    with pytest.raises(pumice.InvalidFileError, match="in_spec"):
        nesting.parse_arguments(nesting.dump(spec | more), 1)
