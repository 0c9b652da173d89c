# SPDX-License-Identifier: Apache-2.0
"""What both callers of a partitioning may choose: pumice.compile and PumicePartitioner."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Self

from pumice.errors import InvalidInputError, require


@dataclass(frozen=True, kw_only=True)
class PlacementOptions:
    """Options that both have; names and types are checked, and an unknown one is refused with the nearest name."""

    KIND: ClassVar[str]  # as messages call one of them
    STAGE: ClassVar[str] = ""  # of errors

    device: str = ""
    features: str = ""
    cache_dir: str = ""
    min_operators: int = 1
    strict: bool = False

    def __new__(cls, *_: Any, **given: Any) -> Self:
        """Raises InvalidInputError for an option that is not known; its message has the nearest name."""
        for name in given:
            require(name, (f.name for f in fields(cls)), cls.KIND)
        return super().__new__(cls)

    def __post_init__(self) -> None:
        for known in fields(self):
            value = getattr(self, known.name)
            if type(value) is not type(known.default):
                text = f"the {self.KIND} {known.name} must be {type(known.default).__name__}, got {value!r}"
                raise InvalidInputError(text, code="InvalidArgument", stage=self.STAGE, path=known.name)

    @classmethod
    def of(cls, value: Self | Mapping[str, Any] | None) -> Self:
        """Options as given: an object, a mapping of names to values, or None for the defaults."""
        if isinstance(value, cls):
            return value
        if not isinstance(value, Mapping | None):
            text = f"options are a dict or {cls.__name__}, got {value!r}"
            raise InvalidInputError(text, code="InvalidArgument", stage=cls.STAGE, path="options")
        return cls(**(value or {}))
