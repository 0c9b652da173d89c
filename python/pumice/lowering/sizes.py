# SPDX-License-Identifier: Apache-2.0
"""Questions about sizes that may be symbolic (torch's SymInt, a sympy expression). None of them adds a guard."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sympy
import torch

INT_MAX = 2**31 - 1
# Of images, as aten.permute takes them: to channels first from channels last, and back.
CHANNELS_FIRST, CHANNELS_LAST = [0, 3, 1, 2], [0, 2, 3, 1]
NO_INDEX = -(2**31)  # of no tensor: what passes/items.py makes of an index that is not to count from the end


def expression(size: int | torch.SymInt) -> sympy.Expr:
    """A size as a sympy expression."""
    return size.node.expr if isinstance(size, torch.SymInt) else sympy.Integer(size)


def of_values(size: Any) -> bool:
    """Whether a number depends on the values of a tensor (`.item()`), not only on the sizes of inputs."""
    symbols = size.node.expr.free_symbols if isinstance(size, torch.SymInt | torch.SymFloat | torch.SymBool) else ()
    return any(symbol.name.startswith(("u", "zuf")) for symbol in symbols)  # torch's names of unbacked symbols


def plain(size: int | torch.SymInt) -> int | torch.SymInt:
    """An int when the size is a fixed number; asking this adds no guard."""
    if isinstance(size, torch.SymInt):
        expr = size.node.expr
        return int(expr) if expr.is_number else size
    return int(size)


def same(a: int | torch.SymInt, b: int | torch.SymInt) -> bool:
    """Whether two sizes are equal for every value of the symbols, as far as can be seen; adds no guard."""
    return expression(a) == expression(b)


def same_shape(a: Any, b: Any) -> bool:
    """`same` for every dimension; False for different ranks."""
    return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))


def largest(size: int | torch.SymInt) -> int | None:
    """The most that a size can be, from the bounds of its symbols; None without one. Adds no guard."""
    if not isinstance(size, torch.SymInt):
        return int(size)
    upper = size.node.shape_env.bound_sympy(size.node.expr).upper
    return int(upper) if upper.is_Integer else None


def affine(expr: sympy.Expr) -> tuple[sympy.Symbol, int, int] | None:
    """(symbol, factor, offset) when the expression is factor * symbol + offset in integers."""
    if len(expr.free_symbols) != 1:
        return None
    (symbol,) = expr.free_symbols
    factor = expr.coeff(symbol)
    offset = expr - factor * symbol
    return (symbol, int(factor), int(offset)) if factor.is_Integer and offset.is_Integer and factor != 0 else None


def ranges(constraints: Mapping[sympy.Expr, Any]) -> dict[sympy.Symbol, Any]:
    """torch's range_constraints by symbol. It gives some for 16 * s, and says then that s itself is 2 or more even
    where 16 is allowed."""
    result = {expr: interval for expr, interval in constraints.items() if isinstance(expr, sympy.Symbol)}
    for expr, interval in constraints.items():
        form = affine(expr)
        if form and form[0] in result and form[1] > 0:
            symbol, factor, offset = form
            own = result[symbol]
            result[symbol] = type(own)(min(own.lower, -((offset - interval.lower) // factor)), own.upper)
    return result
