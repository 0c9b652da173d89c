# SPDX-License-Identifier: Apache-2.0
"""Operators of complex numbers by those of their parts: a rule for each overload.

A rule takes where to add nodes, the arguments by their names, and what gives an operand of one of them: (real part,
imaginary part), nodes or numbers, None for the imaginary part of what is real. It returns a pair, or one node where the
result is real; None where it has no form for these arguments.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.fx import Node

from pumice.lowering.sizes import same_shape
from pumice.passes.rewrite import Before, value_of

aten = torch.ops.aten
Operand = tuple[Any, Any]
Rule = Callable[[Before, dict[str, Any], Callable[[Any], Operand]], Any]


def fit(before: Before, part: Any, like: torch.Tensor) -> Node:
    """A part in the shape and the dtype that the parts of a complex tensor have."""
    dtype = like.dtype.to_real()
    if not isinstance(part, Node):
        return before.call(aten.full.default, list(like.shape), 0.0 if part is None else part, dtype=dtype)
    if value_of(part).dtype is not dtype:
        part = before.call(aten._to_copy.default, part, dtype=dtype)
    if not same_shape(value_of(part).shape, like.shape):
        part = before.call(aten.expand.default, part, list(like.shape))
    return part


def _binary(target: Any, of_numbers: Callable[[Any, Any], Any]) -> Callable[[Before, Any, Any], Any]:
    """A symmetric operator of nodes and numbers."""

    def compute(before: Before, a: Any, b: Any) -> Any:
        if not isinstance(a, Node) and not isinstance(b, Node):
            return of_numbers(a, b)
        return before.call(target, *((a, b) if isinstance(a, Node) else (b, a)))

    return compute


_plus = _binary(aten.add.Tensor, lambda a, b: a + b)
_times = _binary(aten.mul.Tensor, lambda a, b: a * b)


def _minus(before: Before, a: Any, b: Any) -> Any:
    if isinstance(a, Node) and isinstance(b, Node):
        return before.call(aten.sub.Tensor, a, b)
    return _plus(before, a, _negative(before, b))


def _negative(before: Before, a: Any) -> Any:
    return before.call(aten.neg.default, a) if isinstance(a, Node) else -a


def _sum(sign: int) -> Rule:
    def rule(before: Before, given: dict[str, Any], operand: Callable) -> Any:
        (a, b), (c, d) = operand(given["self"]), operand(given["other"])
        if isinstance(given.get("alpha", 1), complex):
            return None
        if given.get("alpha", 1) != 1:
            c, d = (part if part is None else _times(before, part, given["alpha"]) for part in (c, d))
        join = _plus if sign > 0 else _minus
        imaginary = b if d is None else join(before, 0.0 if b is None else b, d)
        return join(before, a, c), imaginary

    return rule


def _reverse(before: Before, given: dict[str, Any], operand: Callable) -> Any:
    return _sum(-1)(before, {**given, "self": given["other"], "other": given["self"]}, operand)


def _product(multiply: Callable[[Before, Any, Any], Any], names: tuple[str, str]) -> Rule:
    def rule(before: Before, given: dict[str, Any], operand: Callable) -> Any:
        (a, b), (c, d) = (operand(given[name]) for name in names)
        real = multiply(before, a, c)
        imaginary = None if b is None else multiply(before, b, c)
        if d is not None:
            if b is not None:
                real = _minus(before, real, multiply(before, b, d))
            other = multiply(before, a, d)
            imaginary = other if imaginary is None else _plus(before, other, imaginary)
        return real, imaginary

    return rule


def _matrices(target: Any) -> Callable[[Before, Any, Any], Any]:
    return lambda before, a, b: before.call(target, a, b)


def _quotient(before: Before, given: dict[str, Any], operand: Callable) -> Any:
    """By a real number only."""
    (a, b), (c, d) = operand(given["self"]), operand(given["other"])
    if b is None or d is not None:
        return None
    return tuple(before.call(aten.div.Tensor, part, c) for part in (a, b))


def _of_parts(function: Callable[[Before, Any, Any], Any]) -> Rule:
    """A function of one complex tensor."""

    def rule(before: Before, given: dict[str, Any], operand: Callable) -> Any:
        a, b = operand(given["self"])
        return None if b is None else function(before, a, b)

    return rule


def _polar(before: Before, size: Any, angle: Any) -> Any:
    return tuple(_times(before, size, before.call(f, angle)) for f in (aten.cos.default, aten.sin.default))


def _cast(before: Before, given: dict[str, Any], operand: Callable) -> Any:
    """To a real dtype the real part alone, as eager PyTorch does with a warning."""
    a, b = operand(given["self"])
    dtype = given["dtype"]
    if dtype is None or dtype.is_complex:
        return a, b
    return before.call(aten._to_copy.default, a, dtype=dtype)


def _choice(before: Before, given: dict[str, Any], operand: Callable) -> Any:
    sides = [operand(given[name]) for name in ("self", "other")]
    zero = lambda part, side: before.call(aten.zeros_like.default, side[0]) if part is None else part  # noqa: E731
    parts = [[zero(side[i], side) for side in sides] for i in (0, 1)]
    return tuple(before.call(aten.where.self, given["condition"], *part) for part in parts)


def _from_pairs(before: Before, given: dict[str, Any], operand: Callable) -> Any:
    return tuple(before.call(aten.select.int, given["self"], -1, part) for part in (0, 1))


def _conjugate(before: Before, a: Any, b: Any) -> Any:
    return a, _negative(before, b)


RULES: dict[Any, Rule] = {
    aten.add.Tensor: _sum(1),
    aten.add.Scalar: _sum(1),
    aten.sub.Tensor: _sum(-1),
    aten.sub.Scalar: _sum(-1),
    aten.rsub.Scalar: _reverse,
    aten.mul.Tensor: _product(_times, ("self", "other")),
    aten.mul.Scalar: _product(_times, ("self", "other")),
    aten.mm.default: _product(_matrices(aten.mm.default), ("self", "mat2")),
    aten.bmm.default: _product(_matrices(aten.bmm.default), ("self", "mat2")),
    aten.matmul.default: _product(_matrices(aten.matmul.default), ("self", "other")),
    aten.div.Tensor: _quotient,
    aten.div.Scalar: _quotient,
    aten.abs.default: _of_parts(lambda before, a, b: before.call(aten.hypot.default, a, b)),
    aten.angle.default: _of_parts(lambda before, a, b: before.call(aten.atan2.default, b, a)),
    aten.exp.default: _of_parts(lambda before, a, b: _polar(before, before.call(aten.exp.default, a), b)),
    aten._conj.default: _of_parts(_conjugate),
    aten._conj_physical.default: _of_parts(_conjugate),
    aten.conj_physical.default: _of_parts(_conjugate),
    aten.resolve_conj.default: _of_parts(lambda before, a, b: (a, b)),
    aten._to_copy.default: _cast,
    aten.where.self: _choice,
    aten.complex.default: lambda before, given, operand: (given["real"], given["imag"]),
    aten.polar.default: lambda before, given, operand: _polar(before, given["abs"], given["angle"]),
    aten.view_as_complex.default: _from_pairs,
}
