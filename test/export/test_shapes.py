# SPDX-License-Identifier: Apache-2.0
"""Symbolic sizes: the nodes written to the file compute what sympy computes, and what cannot be computed is refused."""

from __future__ import annotations

import pytest
import sympy
from torch.utils._sympy.functions import CleanDiv, FloorDiv, Max, Min, Mod, ModularIndexing, PowByNatural, PythonMod
from torch.utils._sympy.numbers import int_oo
from torch.utils._sympy.value_ranges import ValueRanges

from pumice.format.ir import ExprOp, Method
from pumice.lowering.registry import Refused
from pumice.lowering.shapes import INT_MAX, Sizes

S, T = (sympy.Symbol(name, integer=True, nonnegative=True) for name in ("s0", "s1"))


def lowered(expr: sympy.Expr, values: dict[sympy.Symbol, int]) -> int:
    method = Method()
    sizes = Sizes(method, {}, dict.fromkeys((S, T), 2), {})
    return evaluate(method, {symbol.name: value for symbol, value in values.items()}, sizes._build(expr))


def evaluate(method: Method, values: dict[str, int], index: int) -> int:
    results: list[int] = []
    for expr in method.exprs:
        a, b = expr.a, expr.b
        assert expr.op in (ExprOp.constant, ExprOp.symbol) or max(a, b) < len(results), (
            "a node may only use earlier ones"
        )
        match expr.op:
            case ExprOp.constant:
                results.append(a)
            case ExprOp.symbol:
                results.append(values[method.symbols[a].name])
            case ExprOp.add:
                results.append(results[a] + results[b])
            case ExprOp.sub:
                results.append(results[a] - results[b])
            case ExprOp.mul:
                results.append(results[a] * results[b])
            case ExprOp.floordiv:
                results.append(results[a] // results[b])
            case ExprOp.mod:
                results.append(results[a] % results[b])
            case ExprOp.min:
                results.append(min(results[a], results[b]))
            case ExprOp.max:
                results.append(max(results[a], results[b]))
    return results[index]


@pytest.mark.parametrize(
    "expr",
    [
        S + 2 * T - 3,
        S * T * 4,
        S**3 + T,
        -S + 5,
        FloorDiv(S + 3, 4),
        FloorDiv(S - 9, 4),
        CleanDiv(6 * S, 3),
        (S * T * 2) / 2,
        S * (S + 1) / 2,
        Mod(S, 3),
        PythonMod(S - 20, 7),
        ModularIndexing(S, 2, 3),
        Max(S, T, 4),
        Min(S, 3 * T),
        sympy.Max(S, T) - sympy.Min(S, T),
        PowByNatural(S, sympy.Integer(2)),
        FloorDiv(S, 2) * 2 + Mod(S, 2),
    ],
    ids=str,
)
def test_agrees_with_sympy(expr) -> None:
    for s in (0, 1, 2, 7, 40):
        for t in (1, 3, 8):
            assert lowered(expr, {S: s, T: t}) == int(expr.subs({S: s, T: t}))


def test_equal_expressions_are_written_once() -> None:
    method = Method()
    sizes = Sizes(method, {}, {S: 2}, {})
    assert sizes._build(FloorDiv(S, 2) + 1) == sizes._build(1 + FloorDiv(S, 2))
    assert len(method.exprs) == len(set(method.exprs))


def test_bounds_hint_and_name() -> None:
    method = Method()
    ranges = {S: ValueRanges(3, 64), T: ValueRanges(0, int_oo)}
    sizes = Sizes(method, ranges, {S: 100, T: 5}, {S: "tokens"})
    sizes._build(S + T)
    found = {symbol.name: (symbol.min, symbol.max, symbol.hint) for symbol in method.symbols}
    assert found == {"tokens": (3, 64, 64), "s1": (0, INT_MAX, 5)}


@pytest.mark.parametrize(
    ("expr", "reason"),
    [
        (sympy.Symbol("u0"), "a size is read from the values of a tensor"),
        (sympy.Symbol("s9"), "s9 is not the size of any input dimension"),
        (sympy.sin(S), "sin"),
        (S**T, "Pow"),
        (sympy.pi * S, "not an integer expression|pi"),
    ],
)
def test_what_cannot_be_computed_is_refused(expr, reason) -> None:
    with pytest.raises(Refused, match=reason):
        lowered(expr, {S: 1, T: 1})


def test_plain_numbers() -> None:
    assert Sizes(Method(), {}, {}, {}).size(7) == 7
