# SPDX-License-Identifier: Apache-2.0
"""How far a sum of products in fp32 may be off; ops/shared/sum_error.h has the derivation.

Worst case: u * steps * sum|t|. By chance, for terms of random signs: 6 u sqrt(steps) (|y| + q), q = sqrt(sum t^2).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch

SUM_UNIT = 2.0**-24  # of an addition in fp32


@dataclass(frozen=True)
class Sums:
    """Of each element of a result: the exact sum y of its terms t, sum|t|, sum t^2 and the number of terms, in fp64."""

    want: torch.Tensor
    size: torch.Tensor
    squares: torch.Tensor
    terms: int
    usual: torch.Tensor | None = None  # |y| + q, where `want` is no longer y
    added: torch.Tensor | float = 0.0  # sum|t| of the terms that came after a sum of whole numbers

    def error(self, fixed: float, per_term: float = 1.0, unit: float = SUM_UNIT) -> torch.Tensor:
        """The smaller of both bounds, of sums of random signs with `per_term` roundings a term and `fixed` more."""
        if per_term == 0:  # the sum of whole numbers is exact: it and what is added to it round
            return unit * fixed * (self.want.abs() + 2 * self.added)
        steps = per_term * self.terms + fixed
        worst = unit * steps * self.size
        cuts = steps / 16 if unit > SUM_UNIT else 0.0  # matrix units cut off, which does not average out
        chance = unit * (6 * steps**0.5 + cuts) * self.spread()
        return worst.minimum(chance)

    def spread(self) -> torch.Tensor:
        return self.want.abs() + self.squares.sqrt() if self.usual is None else self.usual

    def plus(self, bias: torch.Tensor | None) -> Sums:
        """With one more term; it broadcasts."""
        if bias is None:
            return self
        bias = bias.double()
        usual = None if self.usual is None else self.usual + bias.abs()
        size, squares = self.size + bias.abs(), self.squares + bias.square()
        return Sums(self.want + bias, size, squares, self.terms + 1, usual, self.added + bias.abs())

    def then(self, function: Callable[[torch.Tensor], torch.Tensor]) -> Sums:
        """After a function of slope 1 at most, as relu is, of which an error does not grow."""
        return replace(self, want=function(self.want), usual=self.spread())

    def times(self, factor: torch.Tensor) -> Sums:
        factor = factor.double()
        return Sums(self.want * factor, self.size * factor.abs(), self.squares * factor.square(), self.terms)


def product(a: torch.Tensor, b: torch.Tensor) -> Sums:
    """Of a [.., m, k] @ b [.., k, n]."""
    a, b = a.double(), b.double()
    return Sums(a @ b, a.abs() @ b.abs(), a.square() @ b.square(), a.shape[-1])


def sums(function: Callable[..., torch.Tensor], *tensors: torch.Tensor | None, terms: int) -> Sums:
    """Of a function that is a sum of products of elements of its arguments, as a convolution is."""
    in_64 = [None if t is None else t.double() for t in tensors]
    sizes, squares = ([None if t is None else change(t) for t in in_64] for change in (torch.abs, torch.square))
    return Sums(function(*in_64), function(*sizes), function(*squares), terms)
