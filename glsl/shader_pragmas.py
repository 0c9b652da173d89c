# SPDX-License-Identifier: Apache-2.0
"""The pragmas of a shader: its variant axes, what is left out of their product, and its choices (compile_shader.py)."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from reflect_spirv import ShaderError

# Values of a variant axis that are element types, and the pumice::engine::DType that each stands for.
DTYPES = {"f32": "f32", "f16": "f16", "i32": "i32", "i64": "i64", "u8": "u8", "i8": "i8", "boolean": "boolean"}
IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
PRAGMAS = ("variant", "choice", "without")


@dataclass(frozen=True)
class Axis:
    name: str
    values: tuple[str, ...]

    @property
    def is_dtype(self) -> bool:
        return all(value in DTYPES for value in self.values)

    @property
    def default(self) -> str:
        """Storage axes come last; a caller that does not name them gets buffers."""
        return f" = {self.name}::buffer" if self.values[0] == "buffer" else ""

    def enum(self, value: str) -> str:
        return value if IDENTIFIER.fullmatch(value) else f"_{value}"


@dataclass(frozen=True)
class Rule:
    """A line ``#pragma without``: the values that a variant must have to be left out, by axis."""

    values: dict[str, str]
    line: int

    def matches(self, axes: list[Axis], variant: tuple[str, ...]) -> bool:
        has = dict(zip((axis.name for axis in axes), variant, strict=True))
        return all(has[axis] == value for axis, value in self.values.items())

    def __str__(self) -> str:
        return f"#pragma without {' '.join(f'{axis}={value}' for axis, value in self.values.items())}"


def pragmas(path: Path, text: str) -> Iterator[tuple[int, str, list[str]]]:
    """The line, the kind and the words of each pragma that is ours."""
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split("//")[0].replace("#pragma", "# pragma").split()
        if words[:2] != ["#", "pragma"] or words[2:3] == ["once"]:
            continue
        if len(words) < 3 or words[2] not in PRAGMAS:
            known = ", ".join(PRAGMAS)
            raise ShaderError(path, f"unknown pragma {' '.join(words[2:])!r}; known: {known}", number)
        yield number, words[2], words[3:]


def read_axes(path: Path, text: str) -> tuple[list[Axis], list[Axis]]:
    """The variant axes and the choices that a file names, in order."""
    found: dict[str, list[Axis]] = {"variant": [], "choice": []}
    names: set[str] = set()
    for number, kind, words in pragmas(path, text):
        if kind not in found:
            continue
        name, values = words[0] if words else "", words[1:]
        if not IDENTIFIER.fullmatch(name):
            raise ShaderError(
                path, f"'#pragma {kind} {name}': the axis needs a name: #pragma {kind} AXIS a b c", number
            )
        if name in names:
            raise ShaderError(path, f"axis {name} is named twice; write all its values on one line", number)
        if not values or len(set(values)) != len(values):
            raise ShaderError(path, f"axis {name} needs one or more different values, got {values}", number)
        bad = next((value for value in values if not re.fullmatch(r"\w+", value)), None)
        if bad:
            raise ShaderError(path, f"axis {name}: value {bad!r} is not made of letters, digits and _", number)
        names.add(name)
        found[kind].append(Axis(name, tuple(values)))
    return found["variant"], found["choice"]


def read_rules(path: Path, text: str, axes: list[Axis]) -> list[Rule]:
    """What a file leaves out of the product of its axes. A rule about nothing is a mistake."""
    rules: list[Rule] = []
    left = list(itertools.product(*(axis.values for axis in axes)))
    for number, kind, words in pragmas(path, text):
        if kind != "without":
            continue
        rule = Rule(dict(read_value(path, word, axes, number) for word in words), number)
        if not words or len(rule.values) != len(words):
            raise ShaderError(path, f"'{rule}': one value of each of some axes: #pragma without AXIS=a OTHER=b", number)
        kept = [variant for variant in left if not rule.matches(axes, variant)]
        if len(kept) == len(left):
            raise ShaderError(path, f"'{rule}' leaves out nothing that is not left out already", number)
        rules.append(rule)
        left = kept
    for at, axis in enumerate(axes):
        gone = next((value for value in axis.values if all(variant[at] != value for variant in left)), None)
        if gone:
            raise ShaderError(
                path, f"no variant is left with {axis.name}={gone}; strike it from its axis", rules[-1].line
            )
    return rules


def read_value(path: Path, word: str, axes: list[Axis], number: int) -> tuple[str, str]:
    name, _, value = word.partition("=")
    known = {axis.name: axis.values for axis in axes}
    if name not in known:
        raise ShaderError(path, f"'{word}': there is no axis {name!r}; there are {', '.join(known) or 'none'}", number)
    if value not in known[name]:
        raise ShaderError(path, f"'{word}': axis {name} has the values {', '.join(known[name])}", number)
    return name, value
