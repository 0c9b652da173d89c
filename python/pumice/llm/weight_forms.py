# SPDX-License-Identifier: Apache-2.0
"""What a weight of a language model becomes in the file: quantized by a scheme, or integers that it has already."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from pumice.errors import InvalidInputError
from pumice.quantize_summary import INTEGERS

Read = Callable[[], Tensor]


@dataclass(frozen=True)
class Scheme:
    """`name`: int4, int8 or 8da4w, as pumice.quantize has them."""

    name: str
    group_size: int

    @property
    def _has_groups(self) -> bool:
        return INTEGERS[self.name] == "int4"

    def __str__(self) -> str:
        how = f"groups of {self.group_size}" if self._has_groups else "a scale for each row"
        return f"{self.name}, {how}"

    def group(self, columns: int, layer: str) -> int:
        """Weights of a row that share a scale; raises InvalidInputError when that does not divide the row."""
        if not self._has_groups:
            return columns
        if columns % self.group_size:
            text = f"layer '{layer}' has {columns} inputs, which groups of {self.group_size} do not divide"
            raise InvalidInputError(text, code="InvalidArgument", path=layer)
        return self.group_size


@dataclass(frozen=True)
class Integers:
    """A weight that is quantized already, in groups of `group` along a row. `read`: gives integers [N, K] int8, scales
    and, where `zeros`, int8 zero points [N, groups]."""

    bits: int
    group: int
    zeros: bool
    read: Callable[[], tuple[Tensor, ...]]
