# SPDX-License-Identifier: Apache-2.0
"""`Ref`: a tensor of the program that is being lowered, and what makes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch.fx import Node

from pumice.format.ir import DType


@dataclass(frozen=True)
class Result:
    """What a node of the graph computes: its result number `index`."""

    node: Node
    index: int


@dataclass(frozen=True)
class Stored:
    """A constant of the file: the same key is the same constant."""

    key: str


@dataclass(frozen=True, eq=False)
class Temporary:
    """What one operator call hands to the next inside of one lowering; equal to itself only."""


@dataclass(frozen=True, eq=False)
class Ref:
    """A tensor of `dtype` and `shape`. Making a Ref demands nothing; passing it to `Call.emit` demands the tensor.

    `node`: the node of the graph whose value it is, also of a constant that is computed by a node; None of a temporary
    and of a constant that a lowering made. `key`: of a constant, its name in the file, the same for tied weights.
    """

    made_by: Result | Stored | Temporary
    dtype: DType
    shape: tuple[int | torch.SymInt, ...]
    node: Node | None = None
    torch_dtype: torch.dtype | None = None

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def is_constant(self) -> bool:
        """Whether the values are known when the file is written."""
        return isinstance(self.made_by, Stored)

    @property
    def key(self) -> str:
        """Of a constant: its name in the file. Empty for all other tensors."""
        return self.made_by.key if isinstance(self.made_by, Stored) else ""

    def is_same(self, other: Any) -> bool:
        """Whether `other` is a Ref of the same tensor."""
        return isinstance(other, Ref) and self.made_by == other.made_by
