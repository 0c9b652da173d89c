# SPDX-License-Identifier: Apache-2.0
"""Nesting of arguments and results: as JSON, without torch."""

from __future__ import annotations

import pytest

from pumice import InvalidInputError
from pumice.runtime import nesting

SPEC = {
    "t": [{"t": [None, {"d": [["k", {"l": [None, {"n": 1}]}]]}]}, {"d": [["flag", {"c": True}], ["z", None]]}],
    "names": ["x", "y"],
    "positional": ["x", "y", "flag", "z"],
    "defaults": [["flag", {"c": True}]],
}
NAMES = ["x", "y.k.0", "z"]


@pytest.mark.parametrize(
    ("args", "kwargs"),
    [
        ((1, {"k": [2, None]}), {"z": 3}),
        ((1, {"k": [2, None]}), {"flag": True, "z": 3}),
        ((1,), {"y": {"k": (2, None)}, "z": 3}),
        ((), {"z": 3, "y": {"k": [2, None]}, "x": 1}),
        ((1, {"k": [2, None]}, True, 3), {}),
    ],
)
def test_arguments_by_position_and_by_name(args, kwargs) -> None:
    assert nesting.flatten(SPEC, args, kwargs, NAMES) == [1, 2, 3]


@pytest.mark.parametrize(
    ("args", "kwargs", "message"),
    [
        ((1,), {"z": 3}, "'y' is missing"),
        ((1, {"k": [2, None]}), {}, "'z' is missing"),
        ((1, {"k": [2, None]}), {"z": 3, "w": 4}, "unknown w"),
        ((1, {"k": [2, None]}), {"z": 3, "x": 4}, "'x' is given twice"),
        ((1, {"k": [2, None]}, True, 3, 5), {}, "expected 4 argument"),
        ((1, {"k": [2]}), {"z": 3}, "'y.k': expected a sequence of 2"),
        ((1, {"j": [2, None]}), {"z": 3}, "'y': expected a dict with"),
        ((1, [2]), {"z": 3}, "'y': expected a dict"),
        ((1, {"k": [2, None]}), {"flag": False, "z": 3}, "'flag' was fixed to True"),
        ((1, {"k": [2, None]}), {"flag": 1, "z": 3}, "'flag' was fixed to True"),
        ((1, {"k": [2, 7]}), {"z": 3}, "'y.k.1' was fixed to None"),
    ],
)
def test_what_does_not_fit_is_named(args, kwargs, message) -> None:
    with pytest.raises(InvalidInputError, match=message) as caught:
        nesting.flatten(SPEC, args, kwargs, NAMES)
    assert caught.value.code == "InvalidArgument"


def test_without_a_signature_nothing_is_guessed() -> None:
    old = {key: value for key, value in SPEC.items() if key not in ("positional", "defaults")}
    assert nesting.flatten(old, (1, {"k": [2, None]}), {"flag": True, "z": 3}, NAMES) == [1, 2, 3]
    with pytest.raises(
        InvalidInputError, match="'flag' is missing: it was fixed to True at export and the file has no"
    ):
        nesting.flatten(old, (1, {"k": [2, None]}), {"z": 3}, NAMES)
    with pytest.raises(InvalidInputError, match="give 'flag', 'z' by name"):
        nesting.flatten(old, (1, {"k": [2, None]}, True, 3), {}, NAMES)


def test_without_a_spec_arguments_are_positional_tensors() -> None:
    assert nesting.flatten(None, (1, 2), {}, ["a", "b"]) == [1, 2]
    with pytest.raises(InvalidInputError, match="expected 2 argument"):
        nesting.flatten(None, (1, 2, 3), {}, ["a", "b"])


def test_results() -> None:
    spec = {"d": [["u", None], ["l", {"l": [None, {"t": []}]}], [3, {"c": 7}], ["none", {"n": 1}]]}
    assert nesting.unflatten(nesting.parse_results(nesting.dump(spec), 2), iter("ab")) == {
        "u": "a",
        "l": ["b", ()],
        3: 7,
        "none": None,
    }
    fields = nesting.unflatten({"o": [["first", None], ["second", {"t": [None]}]]}, iter("ab"))
    assert (
        fields.first == fields["first"] == fields[0] == "a"
        and fields[1:] == (("b",),)
        and list(fields) == ["first", "second"]
    )
    with pytest.raises(AttributeError):
        _ = fields.third
    point = nesting.unflatten({"N": [["x", None], ["y", None]], "name": "Point"}, iter("ab"))
    assert point == ("a", "b") and point.y == "b" and type(point).__name__ == "Point"


def test_names_of_leaves() -> None:
    assert nesting.leaf_names({"d": [["k", {"l": [None, {"n": 1}, None]}]]}, "cache") == ["cache.k.0", "cache.k.2"]
    assert nesting.leaf_names(None, "x") == ["x"]
