# SPDX-License-Identifier: Apache-2.0
"""Refuses an unknown name and says which known one is meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from pumice.errors import InvalidInputError


def require(name: str, known: Iterable[str], what: str) -> str:
    """`name`, or an InvalidInputError that names the nearest of `known`."""
    names = sorted(known)
    if name in names:
        return name
    near = difflib.get_close_matches(name, names, n=1)
    hint = f"; did you mean '{near[0]}'?" if near else f"; known: {', '.join(names)}"
    raise InvalidInputError(f"unknown {what} '{name}'{hint}", code="InvalidArgument", path=name)
