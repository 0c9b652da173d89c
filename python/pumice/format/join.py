# SPDX-License-Identifier: Apache-2.0
"""Several programs of one module become one: a method each, with shared constants and states."""

from __future__ import annotations

from collections.abc import Mapping

from pumice.errors import InvalidInputError
from pumice.format import ir

_SMALL = 1 << 16  # bytes: up to here constants are shared by their bytes, too


def join(programs: Mapping[str, ir.Program]) -> ir.Program:
    """A program with the one method of each of `programs`, under its name. They are lowered from one module.

    A stored tensor of the module has one key, so constants of one key and size are one. A constant that was folded, or
    is small, is shared only when its bytes are equal, since its key may stand for another node in another method.
    Raises InvalidInputError when a program has not one method, or two have different precisions, or different first
    values of a state.
    """
    joined = ir.Program()
    constants: dict[tuple[str, int, bytes], int] = {}
    states: dict[str, int] = {}
    features: dict[str, None] = {}
    for name, program in programs.items():
        if len(program.methods) != 1:
            text = f"method '{name}': a program with {len(program.methods)} methods cannot be joined"
            raise InvalidInputError(text, code="InvalidArgument", path=name)
        places = [_constant(joined, constants, constant, name) for constant in program.constants]
        numbers = [_state(joined, states, state, places) for state in program.states]
        method = program.methods[0]
        method.name = name
        for value in method.values:
            if value.kind is ir.ValueKind.constant:
                value.ref = places[value.ref]
            elif value.kind is ir.ValueKind.state:
                value.ref = numbers[value.ref]
        joined.methods.append(method)
        if joined.methods[1:] and program.precision is not joined.precision:
            kinds = f"{program.precision.name}, those before {joined.precision.name}"
            text = f"method '{name}' is {kinds}: export all with one precision"
            raise InvalidInputError(text, code="InvalidArgument", path=name)
        joined.precision = program.precision
        features.update(dict.fromkeys(program.required_features))
    joined.required_features = list(features)
    return joined


def _constant(joined: ir.Program, known: dict[tuple[str, int, bytes], int], constant: ir.Constant, method: str) -> int:
    """The number of a constant among those of `joined`."""
    by_bytes = constant.size <= _SMALL or "folded." in constant.key
    key = constant.key, constant.size, bytes(constant.data()) if by_bytes else b""
    if key not in known:
        if any(other.key == constant.key for other in joined.constants):
            constant.key = f"{method}:{constant.key}"
        known[key] = len(joined.constants)
        joined.constants.append(constant)
    return known[key]


def _state(joined: ir.Program, known: dict[str, int], state: ir.State, places: list[int]) -> int:
    """The number of a state among those of `joined`."""
    initial = -1 if state.constant < 0 else places[state.constant]
    number = known.setdefault(state.key, len(joined.states))
    if number == len(joined.states):
        joined.states.append(ir.State(state.key, initial))
    elif joined.states[number].constant != initial:
        text = f"the state '{state.key}' starts with different values in two methods"
        raise InvalidInputError(text, code="InvalidArgument", path=state.key)
    return number
