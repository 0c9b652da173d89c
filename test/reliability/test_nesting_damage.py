# SPDX-License-Identifier: Apache-2.0
"""Damaged nestings of a file: InvalidFileError, or a nesting whose tensors are as many as the method's."""

from __future__ import annotations

import copy
import json
import random
from typing import Any

from support.long_form import times

import pumice
from pumice.runtime import nesting

POINT = {"N": [["x", None], ["y", {"c": 2}]], "name": "Point"}
FIELDS = {"o": [["logits", None], ["cache", {"l": [None, None]}]]}
ARGUMENTS = {
    "t": [{"t": [None, {"l": [None, {"n": 1}]}, POINT]}, {"d": [["mask", FIELDS], ["flag", {"c": True}]]}],
    "names": ["x", "items", "point"],
    "positional": ["x", "items", "point", "scale"],
    "defaults": [["scale", {"c": 1.5}], ["flag", {"c": True}], ["shape", {"t": [{"c": 1}, {"n": 1}]}]],
}
RESULTS = {"d": [["a", FIELDS], [3, {"t": [None, POINT, {"t": []}]}]]}
WORDS = ["t", "l", "d", "o", "N", "n", "c", "name", "names", "positional", "defaults", "x", "mask", "class", "_a", ""]
CONSTANTS = [None, 1, -1.5, True, "", float("nan"), 10**400]
JUNK = [*CONSTANTS, [], {}, [[]], {"n": 1}, {"c": [1]}, {"t": [None]}, WORDS, *WORDS]


def places(value: Any) -> list[tuple[Any, Any]]:
    """(container, key) of everything inside of `value`."""
    keys = range(len(value)) if isinstance(value, list) else list(value) if isinstance(value, dict) else ()
    return [place for key in keys for place in [(value, key), *places(value[key])]]


def damaged(text: str, chance: random.Random) -> str:
    """One to three changes: of a character, or of something inside: another value, twice, gone, elsewhere."""
    for _ in range(chance.randint(1, 3)):
        if chance.random() < 0.2:
            at = chance.randrange(len(text))
            return text[:at] + chance.choice('{}[]",:0e-nNt\x00\ud800') + text[at + chance.randint(0, 1) :]
        spec = json.loads(text)
        inside = places(spec)
        if not inside:
            return text
        (here, key), (there, other) = chance.choice(inside), chance.choice(inside)
        change = chance.randrange(5)
        if change == 0:
            here[key] = copy.deepcopy(chance.choice(JUNK))
        elif change == 1:
            here[key] = copy.deepcopy(there[other])
        elif change == 2:
            del here[key]
        elif isinstance(here, list):
            here.insert(key, copy.deepcopy(here[key]))
        else:
            here[chance.choice(WORDS)] = here.pop(key)
        text = json.dumps(spec)
    return text


def results(text: str, tensors: int) -> None:
    left = iter(range(tensors))
    nesting.unflatten(nesting.parse_results(text, tensors), left)
    assert next(left, None) is None


def call(text: str, tensors: int) -> None:
    """What a session does with the nesting of its arguments."""
    spec = nesting.parse_arguments(text, tensors)
    args, kwargs = nesting.unflatten({"t": spec["t"]}, iter(range(tensors)))
    assert len(nesting.leaf_names({"t": spec["t"]}, "")) == tensors
    try:
        assert nesting.flatten(spec, args, kwargs, []) == list(range(tensors))
        nesting.flatten(spec, (), {"x": 1, "items": [1, None], "shape": 3}, [])
    except pumice.InvalidInputError:
        pass


def test_damaged_nestings() -> None:
    chance = random.Random(14)
    counts = {"read": 0, "refused": 0}
    for _ in range(times(10_000, 300_000)):
        for use, spec, leaves in ((call, ARGUMENTS, 6), (results, RESULTS, 5)):
            text, tensors = damaged(nesting.dump(spec), chance), leaves + chance.choice((0, 0, 0, -1, 1))
            try:
                use(text, tensors)
                counts["read"] += 1
            except pumice.InvalidFileError as error:
                assert error.code == "BadSchema", error
                counts["refused"] += 1
            except Exception as error:
                raise AssertionError((text, tensors)) from error
    print(counts)
    assert min(counts.values()) > 500, counts
