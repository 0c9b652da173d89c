# SPDX-License-Identifier: Apache-2.0
"""Fourier transforms of a fixed length -> products with the matrix of the transform, a constant: cosines and sines
beside each other, computed in fp64 and rounded once to f32.

A complex tensor is a pair of nodes here, its real and its imaginary part (passes/complex_pairs.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch.fx import Node

from pumice.lowering.instead import MOST_FOURIER
from pumice.passes.rewrite import Before, arguments, value_of

aten = torch.ops.aten
Pair = tuple[Node, Node]
Stores = Callable[[str, Callable[[], torch.Tensor]], Node]  # the node of a constant, which is made once for each name


def transforms(node: Node) -> bool:
    """Whether the lengths of a transform are fixed and at most MOST_FOURIER."""
    given = arguments(node)
    sizes = [value_of(given["self"]).shape[dim] for dim in given["dim"]]
    sizes += [given["last_dim_size"]] if "last_dim_size" in given else []
    real = value_of(given["self"]).dtype in (torch.float32, torch.complex64)
    return real and all(type(size) is int and 0 < size <= MOST_FOURIER for size in sizes)


def r2c(node: Node, x: Node, before: Before, stores: Stores) -> Pair:
    """Real numbers; along the last one of the dimensions perhaps only the half that is not the mirror of the other."""
    given = arguments(node)
    *others, last = given["dim"]
    size = value_of(x).shape[last]
    made = size // 2 + 1 if given["onesided"] else size
    pair = _along(before, last, [x], lambda one: _product(before, one[0], _basis(stores, size, made, -1, given)))
    return _c2c(pair, others, -1, given, before, stores)


def c2c(node: Node, x: Pair, before: Before, stores: Stores) -> Pair:
    """Forward or back along each of the dimensions."""
    given = arguments(node)
    return _c2c(x, given["dim"], -1 if given["forward"] else 1, given, before, stores)


def c2r(node: Node, x: Pair, before: Before, stores: Stores) -> Node:
    """Back to real numbers: the half that is given stands for both, but for the elements that are their own mirrors."""
    given = arguments(node)
    *others, last = given["dim"]
    size, scale = given["last_dim_size"], _scale(given["normalization"], given["last_dim_size"])
    have = value_of(x[0]).shape[last]
    matrix = stores(f"fourier.back.{size}.{have}.{given['normalization']}", lambda: _back(size, have) * scale)
    pair = _c2c(x, others, 1, given, before, stores)
    both = lambda parts: (before.call(aten.matmul.default, before.call(aten.cat.default, parts, -1), matrix),)  # noqa: E731
    return _along(before, last, list(pair), both)[0]


def _c2c(x: Pair, dims: list[int], sign: int, given: dict[str, Any], before: Before, stores: Stores) -> Pair:
    for dim in dims:
        size = value_of(x[0]).shape[dim]
        matrix = _basis(stores, size, size, sign, given)

        def turned(parts: list[Node], matrix: Node = matrix) -> Pair:
            (a, b), (c, d) = (_product(before, part, matrix) for part in parts)
            return before.call(aten.sub.Tensor, a, d), before.call(aten.add.Tensor, b, c)

        x = _along(before, dim, list(x), turned)
    return x


def _along(before: Before, dim: int, parts: list[Node], function: Callable[[list[Node]], Any]) -> Any:
    """`function` of the parts with a dimension last, which is then put back."""
    rank = value_of(parts[0]).dim()
    order = [d for d in range(rank) if d != dim % rank] + [dim % rank]
    back = [order.index(d) for d in range(rank)]
    moved = [before.call(aten.permute.default, part, order) for part in parts]
    return tuple(before.call(aten.permute.default, part, back) for part in function(moved))


def _product(before: Before, x: Node, matrix: Node) -> Pair:
    """x times the cosines, and times the sines."""
    made = value_of(matrix).shape[-1] // 2
    both = before.call(aten.matmul.default, x, matrix)
    return tuple(before.call(aten.slice.Tensor, both, -1, at, at + made) for at in (0, made))


def _basis(stores: Stores, size: int, made: int, sign: int, given: dict[str, Any]) -> Node:
    scale = _scale(given["normalization"], size)
    name = f"fourier.{'forth' if sign < 0 else 'inverse'}.{size}.{made}.{given['normalization']}"
    return stores(name, lambda: torch.cat([part * scale for part in _turns(size, made, sign)], 1))


def _scale(normalization: int, size: int) -> float:
    """0: none, 1: by the root of the size, 2: by the size."""
    return (1.0, 1 / math.sqrt(size), 1 / size)[normalization]


def _turns(size: int, made: int, sign: int) -> tuple[torch.Tensor, torch.Tensor]:
    """[size, made] in fp64: cosine and signed sine of 2 pi i k / size, exact at quarters of a turn."""
    steps = torch.arange(size)[:, None] * torch.arange(made) % size
    angle = steps.double() * (2 * math.pi / size)
    exact = steps * 4 % size == 0
    cosine, sine = (torch.where(exact, part.round(), part) for part in (angle.cos(), angle.sin()))
    return cosine, sign * sine


def _back(size: int, have: int) -> torch.Tensor:
    """[2 * have, size]: what the real and the imaginary parts of a half add to each result."""
    cosine, sine = (part[:have] for part in _turns(size, size, -1))
    mirrored = torch.arange(have)[:, None]
    weight = torch.where((mirrored == 0) | (mirrored * 2 == size), 1.0, 2.0).double()
    return torch.cat([cosine * weight, sine * weight])
