# SPDX-License-Identifier: Apache-2.0
"""The inputs of `bench` and `profile`: real ones from .npy files, or random ones of the sizes that are asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
import numpy as np

from pumice.errors import InvalidInputError
from pumice.runtime.shapes import Shape, shapes_of

if TYPE_CHECKING:
    import pumice

T = TypeVar("T")


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
    given = _each_once("--shape", _parse_shape, shapes)
    named = _each_once("--size", _parse_size, sizes)
    try:
        return shapes_of(session.inputs, given, named)
    except InvalidInputError as error:
        raise click.UsageError(f"--shape, --size: {error}") from None


def random_inputs(session: pumice.Session, shapes: Iterable[Shape], seed: int = 0) -> list[np.ndarray]:
    """One array for each input: floats N(0, 1), integers and bools 0 or 1 (valid as token ids and as masks)."""
    generator = np.random.default_rng(seed)
    arrays = []
    for spec, shape in zip(session.inputs, shapes, strict=True):
        dtype = np.dtype(spec.dtype)
        values = generator.standard_normal(shape) if dtype.kind == "f" else generator.integers(0, 2, shape)
        arrays.append(np.asarray(values).astype(dtype))
    return arrays


def _each_once(option: str, parse: Callable[[str], tuple[str, T]], texts: Iterable[str]) -> dict[str, T]:
    found: dict[str, T] = {}
    for text in texts:
        name, value = parse(text)
        if name in found:
            raise click.UsageError(f"{option} {text}: '{name}' is given twice")
        found[name] = value
    return found


def _parse_shape(text: str) -> tuple[str, Shape]:
    name, _, dims = text.partition("=")
    try:
        return name, tuple(int(dim) for dim in dims.split("x")) if dims else ()
    except ValueError:
        raise click.UsageError(f"--shape {text}: sizes are whole numbers joined by 'x', as in ids=1x128") from None


def _parse_size(text: str) -> tuple[str, int]:
    name, _, number = text.partition("=")
    if not number.isdecimal():
        raise click.UsageError(f"--size {text}: a size is a whole number, as in {name}=128")
    return name, int(number)
