# SPDX-License-Identifier: Apache-2.0
"""Symbolic sizes: torch's SymInt (a sympy expression) -> nodes of Method.exprs."""

from __future__ import annotations

import functools
from typing import Any

import sympy
import torch
from torch.utils._sympy import functions as ts

from pumice.format.ir import Expr, ExprOp, Method, Size, SizeExpr, Symbol
from pumice.lowering.instead import VALUES
from pumice.lowering.registry import Refused
from pumice.lowering.sizes import INT_MAX, expression


class Sizes:
    """Builds Method.symbols and Method.exprs; equal expressions share a node."""

    def __init__(
        self,
        method: Method,
        ranges: dict[sympy.Symbol, Any],
        hints: dict[sympy.Symbol, int],
        names: dict[sympy.Symbol, str],
    ) -> None:
        self._method = method
        self._ranges = ranges
        self._hints = hints  # of the symbols that the runtime computes from the size of an input dimension
        self._names = names
        self._symbols: dict[sympy.Symbol, int] = {}
        self._nodes: dict[Expr, int] = {}
        self._done: dict[sympy.Expr, int] = {}

    def size(self, size: int | torch.SymInt) -> Size:
        """The file's form of a size; Refused when it cannot be computed from the shapes of the inputs."""
        expr = expression(size)
        return int(expr) if expr.is_Integer else SizeExpr(self._build(expr))

    def check(self, size: int | torch.SymInt) -> None:
        """Refused when `size` cannot be written; used while deciding, so that the reason names the node."""
        self.size(size)

    def _build(self, expr: sympy.Expr) -> int:
        if expr not in self._done:
            self._done[expr] = self._lower(expr)
        return self._done[expr]

    def _lower(self, expr: sympy.Expr) -> int:
        if expr.is_Integer:
            return self._node(ExprOp.constant, int(expr))
        if isinstance(expr, sympy.Symbol):
            return self._node(ExprOp.symbol, self._symbol(expr))
        if isinstance(expr, sympy.Mul):
            return self._product(expr)
        fold = {
            sympy.Add: ExprOp.add,
            sympy.Max: ExprOp.max,
            sympy.Min: ExprOp.min,
            ts.Max: ExprOp.max,
            ts.Min: ExprOp.min,
        }
        if type(expr) in fold:
            return functools.reduce(
                functools.partial(self._node, fold[type(expr)]), [self._build(a) for a in expr.args]
            )
        if isinstance(expr, sympy.Pow | ts.PowByNatural) and expr.args[1].is_Integer and 0 < int(expr.args[1]) <= 8:
            return functools.reduce(
                functools.partial(self._node, ExprOp.mul), [self._build(expr.args[0])] * int(expr.args[1])
            )
        if isinstance(expr, ts.FloorDiv | ts.CleanDiv):
            return self._node(ExprOp.floordiv, *map(self._build, expr.args))
        if isinstance(expr, ts.Mod | ts.PythonMod):
            return self._node(ExprOp.mod, *map(self._build, expr.args))
        if isinstance(expr, ts.ModularIndexing):
            base, divisor, modulus = map(self._build, expr.args)
            return self._node(ExprOp.mod, self._node(ExprOp.floordiv, base, divisor), modulus)
        if isinstance(expr, ts.Identity):
            return self._build(expr.args[0])
        raise Refused(f"the size {expr} uses {type(expr).__name__}, which Pumice's size expressions do not have")

    def _product(self, expr: sympy.Mul) -> int:
        """A product; a fraction in front (torch has proved the division exact) becomes a division at the end."""
        coefficient, factors = expr.as_coeff_mul()
        if not coefficient.is_Rational:
            raise Refused(f"the size {expr} is not an integer expression")
        nodes = [self._build(f) for f in factors]
        if coefficient.p != 1:
            nodes.append(self._build(sympy.Integer(coefficient.p)))
        product = functools.reduce(functools.partial(self._node, ExprOp.mul), nodes)
        return (
            product
            if coefficient.q == 1
            else self._node(ExprOp.floordiv, product, self._build(sympy.Integer(coefficient.q)))
        )

    def _node(self, op: ExprOp, a: int, b: int = 0) -> int:
        expr = Expr(op, a, b)
        if expr not in self._nodes:
            self._nodes[expr] = len(self._method.exprs)
            self._method.exprs.append(expr)
        return self._nodes[expr]

    def _symbol(self, symbol: sympy.Symbol) -> int:
        if symbol not in self._symbols:
            if symbol not in self._hints:
                if symbol.name.startswith("u"):
                    raise Refused(f"a size is read from the values of a tensor: {VALUES}")
                raise Refused(
                    f"the size {symbol} is not the size of any input dimension, by itself or as 16 * size + 3"
                )
            low, high = self._bounds(symbol)
            hint = min(max(self._hints[symbol], low), high)
            self._symbols[symbol] = len(self._method.symbols)
            self._method.symbols.append(Symbol(self._names.get(symbol, symbol.name), low, high, hint))
        return self._symbols[symbol]

    def _bounds(self, symbol: sympy.Symbol) -> tuple[int, int]:
        interval = self._ranges.get(symbol)
        if interval is None:
            return 0, INT_MAX
        clip = lambda bound: int(max(0, min(INT_MAX, bound))) if bound.is_finite else (INT_MAX if bound > 0 else 0)  # noqa: E731
        return clip(sympy.sympify(interval.lower)), clip(sympy.sympify(interval.upper))
