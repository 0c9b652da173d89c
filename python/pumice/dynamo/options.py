# SPDX-License-Identifier: Apache-2.0
"""What a caller of pumice.compile may choose."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from pumice.errors import InvalidInputError, require


@dataclass(frozen=True, kw_only=True)
class CompileOptions:
    """Options of pumice.compile and of backend="pumice"; an unknown one is refused with the nearest name.

    device, features, cache_dir: as for pumice.load; "" is its default.
    min_operators: a partition with fewer operators stays in eager.
    weights: how a change of a weight is noticed, after which the graph is built again. "hashed": all their bytes, at
        every call, so that no change is missed. "versions": by PyTorch's counters and addresses, which cost nothing and
        do not see what is written by way of `.data` or NumPy.
    strict: raise UnsupportedError, with the reasons, where a node of a graph would stay in eager.
    """

    device: str = ""
    features: str = ""
    cache_dir: str = ""
    min_operators: int = 1
    weights: str = "hashed"
    strict: bool = False

    def __new__(cls, *_: Any, **given: Any) -> CompileOptions:
        """Raises InvalidInputError for an option that is not known; its message has the nearest name."""
        for name in given:
            require(name, (f.name for f in fields(cls)), "option of pumice.compile")
        return super().__new__(cls)

    def __post_init__(self) -> None:
        for known in fields(self):
            value = getattr(self, known.name)
            if type(value) is not type(known.default):
                text = f"the option {known.name} must be {type(known.default).__name__}, got {value!r}"
                raise InvalidInputError(text, code="InvalidArgument", path=known.name)
        require(self.weights, ("hashed", "versions"), "value of the option weights:")

    @staticmethod
    def of(value: CompileOptions | Mapping[str, Any] | None) -> CompileOptions:
        """Options as given: an object, a mapping of names to values, or None for the defaults."""
        if isinstance(value, CompileOptions):
            return value
        if not isinstance(value, Mapping | None):
            text = f"options must be a dict of names and values, got {value!r}"
            raise InvalidInputError(text, code="InvalidArgument", path="options")
        return CompileOptions(**(value or {}))
