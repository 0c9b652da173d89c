# SPDX-License-Identifier: Apache-2.0
"""The shapes of all inputs of a run, from those that a caller gives by the names of inputs and of dynamic sizes."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from numbers import Integral

from pumice.errors import InvalidInputError
from pumice.runtime.tensor_spec import TensorSpec

Shape = tuple[int, ...]
_FORM = 'sizes and shapes by name are needed, {{"seq": 128}} or {{"ids": (32, 128)}}, got {!r}'


def shapes_of(inputs: Iterable[TensorSpec], shapes: Mapping[str, Shape], sizes: Mapping[str, int]) -> list[Shape]:
    """A shape for each input: given in `shapes` by its name, computed from `sizes`, or that of the export.

    Where a shape says what a dynamic size is, the other inputs follow. Raises InvalidInputError for a name that the
    inputs do not have, another number of dimensions, and a size that is given twice and differs.
    """
    specs = {spec.name: spec for spec in inputs}
    known = size_names(specs.values())
    for name in shapes:
        if name not in specs:
            raise _bad(f"no input '{name}'; the inputs are {', '.join(specs)}")
        if len(shapes[name]) != len(specs[name].dims):
            raise _bad(f"input '{name}': {len(specs[name].dims)} sizes are needed, for {specs[name]}")
    for name in sizes:
        if name not in known:
            others = f"they are {', '.join(known)}" if known else "all sizes of this file are fixed"
            raise _bad(f"no dynamic size '{name}'; {others}")
    named = dict(sizes)
    said = dict.fromkeys(named, "by its name")
    for name, shape in shapes.items():
        for dim, size in zip(specs[name].dims, shape, strict=True):
            if isinstance(dim, str) and _names(dim) == {dim}:
                if named.setdefault(dim, size) != size:
                    raise _bad(f"the size {dim} is {named[dim]} {said[dim]} and {size} by the shape of {name}")
                said.setdefault(dim, f"by the shape of {name}")
    return [tuple(shapes[name]) if name in shapes else _of_sizes(spec, named) for name, spec in specs.items()]


def run_shapes(inputs: Sequence[TensorSpec], sizes: Mapping[str, int | Sequence[int]]) -> list[Shape]:
    """The shapes of a run, each within the bounds of the file, from numbers of sizes and shapes of inputs by name.

    Raises InvalidInputError also for what is no such mapping.
    """
    if not isinstance(sizes, Mapping) or not all(isinstance(name, str) for name in sizes):
        raise _bad(_FORM.format(sizes))
    shapes = {name: tuple(given) for name, given in sizes.items() if isinstance(given, list | tuple)}
    named = {name: given for name, given in sizes.items() if name not in shapes}
    given = [number for each in (*shapes.values(), named.values()) for number in each]
    if not all(isinstance(number, Integral) and not isinstance(number, bool) for number in given):
        raise _bad(_FORM.format(sizes))
    whole = {name: tuple(map(int, shape)) for name, shape in shapes.items()}  # NumPy's integers, too
    found = shapes_of(inputs, whole, {name: int(number) for name, number in named.items()})
    for spec, shape in zip(inputs, found, strict=True):
        if any(not lo <= size <= hi for size, (lo, hi) in zip(shape, spec.bounds, strict=True)):
            raise _bad(f"input '{spec.name}': the shape {shape} is out of bounds, allowed is {spec}")
    return found


def size_names(inputs: Iterable[TensorSpec]) -> list[str]:
    """The names of the dynamic sizes, in the order of the inputs."""
    return list(dict.fromkeys(n for spec in inputs for dim in spec.dims if isinstance(dim, str) for n in _names(dim)))


def _bad(text: str) -> InvalidInputError:
    return InvalidInputError(text, code="InvalidArgument", stage="input")


def _of_sizes(spec: TensorSpec, named: Mapping[str, int]) -> Shape:
    return tuple(
        _value(dim, named) if isinstance(dim, str) and _names(dim) <= named.keys() else example
        for dim, example in zip(spec.dims, spec.example, strict=True)
    )


def _names(dim: str) -> set[str]:
    """The symbols in a dimension that the file describes as text, such as "(16 * blocks)"; names may be any text."""
    try:
        tree = ast.parse(dim, mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {dim}
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} - {"min", "max"} or {dim}


_OPERATORS: dict[type, Callable[[int, int], int]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv,
    ast.Div: operator.floordiv, ast.Mod: operator.mod,
}  # fmt: skip


def _value(dim: str, named: Mapping[str, int]) -> int:
    def walk(node: ast.AST) -> int:
        match node:
            case ast.Constant(value=int(value)):
                return value
            case ast.Name():
                return named[node.id]
            case ast.BinOp() if type(node.op) in _OPERATORS:
                return _OPERATORS[type(node.op)](walk(node.left), walk(node.right))
            case ast.Call() if isinstance(node.func, ast.Name) and node.func.id in ("min", "max"):
                return {"min": min, "max": max}[node.func.id](map(walk, node.args))
        raise _bad(f"the size {dim} cannot be computed from sizes: give the shape of its input")

    return named[dim] if dim in named else walk(ast.parse(dim, mode="eval").body)
