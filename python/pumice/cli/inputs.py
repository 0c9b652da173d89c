# SPDX-License-Identifier: Apache-2.0
"""The inputs of `bench` and `profile`: real ones from .npy files, or random ones of the sizes that are asked for."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

if TYPE_CHECKING:
    import pumice

Shape = tuple[int, ...]


def input_options(command: Any) -> Any:
    """--shape, --size and --inputs, each several times; `inputs` makes arrays of them."""
    for option in (
        click.option(
            "--inputs",
            "-i",
            "files",
            multiple=True,
            type=click.Path(exists=True, dir_okay=False, path_type=Path),
            help="One .npy file for each input, in order, instead of random ones. Repeatable.",
        ),
        click.option(
            "--size",
            "sizes",
            multiple=True,
            metavar="NAME=N",
            help="A dynamic size by its name, as `pumice inspect` lists them: seq=128, for every input. Repeatable.",
        ),
        click.option(
            "--shape",
            "shapes",
            multiple=True,
            metavar="NAME=AxBxC",
            help="Shape of one input, e.g. ids=1x128. Other inputs follow where they share a size by name; a size that "
            "nothing sets is that of the export. Repeatable.",
        ),
    ):
        command = option(command)
    return command


def inputs(
    session: pumice.Session, shapes: Iterable[str], sizes: Iterable[str], files: tuple[Path, ...]
) -> list[np.ndarray]:
    """The arrays of a run; raises click.UsageError for a name, number or file that does not fit."""
    if not files:
        return random_inputs(session, resolve(session, shapes, sizes))
    if tuple(shapes) or tuple(sizes):
        raise click.UsageError("--inputs have their own shapes: leave out --shape and --size")
    return [read_npy(path) for path in files]


def read_npy(path: Path) -> np.ndarray:
    """The array of a .npy file."""
    try:
        return np.load(path, allow_pickle=False)
    except (ValueError, OSError) as error:
        raise click.UsageError(f"{path} is not a .npy file: {error}") from None


def batches(files: Iterable[Path]) -> list[tuple[Any, ...]]:
    """The tensors of .npy and .npz files, each file the arguments of one call; an .npz has them in its order."""
    import torch

    found = []
    for path in files:
        arrays = read_npy(path)
        values = [arrays] if isinstance(arrays, np.ndarray) else [arrays[name] for name in arrays.files]
        found.append(tuple(torch.from_numpy(value) for value in values))
    return found


def resolve(session: pumice.Session, shapes: Iterable[str], sizes: Iterable[str]) -> list[Shape]:
    """The shape of every input: given by --shape, computed from the named sizes, or that of the export."""
    given = _parse_shapes(session, shapes)
    named = _parse_sizes(session, sizes)
    said = dict.fromkeys(named, "--size")
    for spec in session.inputs:
        for dim, size in zip(spec.dims, given.get(spec.name, ()), strict=False):
            if isinstance(dim, str) and _names(dim) == {dim}:
                if named.setdefault(dim, size) != size:
                    raise click.UsageError(
                        f"the size {dim} is {named[dim]} by {said[dim]} and {size} by --shape {spec.name}"
                    )
                said.setdefault(dim, f"--shape {spec.name}")
    return [given.get(spec.name) or _of_sizes(spec, named) for spec in session.inputs]


def random_inputs(session: pumice.Session, shapes: Iterable[Shape], seed: int = 0) -> list[np.ndarray]:
    """One array for each input: floats N(0, 1), integers and bools 0 or 1 (valid as token ids and as masks)."""
    generator = np.random.default_rng(seed)
    arrays = []
    for spec, shape in zip(session.inputs, shapes, strict=True):
        dtype = np.dtype(spec.dtype)
        values = generator.standard_normal(shape) if dtype.kind == "f" else generator.integers(0, 2, shape)
        arrays.append(np.asarray(values).astype(dtype))
    return arrays


def _parse_shapes(session: pumice.Session, shapes: Iterable[str]) -> dict[str, Shape]:
    names = {spec.name: spec for spec in session.inputs}
    parsed: dict[str, Shape] = {}
    for text in shapes:
        name, _, dims = text.partition("=")
        if name not in names:
            raise click.UsageError(f"--shape {text}: no input '{name}'; the inputs are {', '.join(names)}")
        try:
            parsed[name] = tuple(int(dim) for dim in dims.split("x")) if dims else ()
        except ValueError:
            raise click.UsageError(f"--shape {text}: sizes are whole numbers joined by 'x', as in ids=1x128") from None
        if len(parsed[name]) != len(names[name].dims):
            raise click.UsageError(f"--shape {text}: {len(names[name].dims)} sizes are needed, for {names[name]}")
    return parsed


def _parse_sizes(session: pumice.Session, sizes: Iterable[str]) -> dict[str, int]:
    known = dict.fromkeys(
        name for spec in session.inputs for dim in spec.dims if isinstance(dim, str) for name in _names(dim)
    )
    named: dict[str, int] = {}
    for text in sizes:
        name, _, number = text.partition("=")
        if name not in known:
            others = f"they are {', '.join(known)}" if known else "all sizes of this file are fixed"
            raise click.UsageError(f"--size {text}: no dynamic size '{name}'; {others}")
        if not number.isdecimal():
            raise click.UsageError(f"--size {text}: a size is a whole number, as in {name}=128")
        named[name] = int(number)
    return named


def _of_sizes(spec: pumice.TensorSpec, named: dict[str, int]) -> Shape:
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


def _value(dim: str, named: dict[str, int]) -> int:
    def walk(node: Any) -> int:
        match node:
            case ast.Constant():
                return int(node.value)
            case ast.Name():
                return named[node.id]
            case ast.BinOp() if type(node.op) in _OPERATORS:
                return _OPERATORS[type(node.op)](walk(node.left), walk(node.right))
            case ast.Call() if isinstance(node.func, ast.Name) and node.func.id in ("min", "max"):
                return {"min": min, "max": max}[node.func.id](map(walk, node.args))
        raise click.UsageError(f"the size {dim} cannot be computed from --size: give --shape")

    return named[dim] if dim in named else walk(ast.parse(dim, mode="eval").body)
