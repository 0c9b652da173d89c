# SPDX-License-Identifier: Apache-2.0
"""`pumice quantize`, and the options that say how, which `pumice export --quantize` has, too."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from pumice.cli.inputs import batches
from pumice.cli.source import load_source

SCHEMES = click.Choice(["int4", "int8", "8da4w", "8da8w", "static8"])
_HOW = (
    click.option("--group-size", default=32, show_default=True, help="Weights that share a scale, in 4-bit schemes."),
    click.option(
        "--layers",
        multiple=True,
        metavar="PATTERN",
        help="Quantize only layers of these names, as in 'encoder.*'; '!head' leaves head out. Repeatable.",
    ),
    click.option(
        "--embeddings", type=click.Choice(["int4", "int8", "float"]), help="Quantize embeddings, too, or never."
    ),
    click.option("--skip-unfit", is_flag=True, help="Leave layers as they are that the scheme does not fit."),
    click.option(
        "--calibration",
        multiple=True,
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="For static8: a batch of what the model will see, .npy of its input or .npz of its inputs. Repeatable.",
    ),
)


def how_options(command: Callable) -> Callable:
    """Adds --group-size, --layers, --embeddings, --skip-unfit and --calibration."""
    for option in reversed(_HOW):
        command = option(command)
    return command


def quantized(
    module: Any, scheme: str, dynamic_shapes: Any, group_size: int, layers: tuple[str, ...], embeddings: str | None,
    skip_unfit: bool, calibration: tuple[Path, ...],
) -> tuple[Any, Any]:  # fmt: skip
    """The quantized module, and the summary of what became of its layers."""
    import pumice

    how: dict[str, Any] = {"filter": layers or None, "embeddings": embeddings, "skip_unfit": skip_unfit}
    if calibration or scheme == "static8":
        how |= {"calibration": batches(calibration), "dynamic_shapes": dynamic_shapes}
    made: list[Any] = []
    with Console(stderr=True).status(f"quantizing to {scheme}"):
        module = pumice.quantize(module, scheme, group_size=group_size, **how, summary=made.append)
    return module, made[0]


@click.command()
@click.argument("source", metavar="FILE.py:FUNCTION")
@click.argument("scheme", type=SCHEMES)
@how_options
def quantize(source: str, scheme: str, **how: Any) -> None:
    """Print what a scheme makes of each layer, with bytes before and after; nothing is written.

    FUNCTION is that of `pumice export`, which writes the file: pumice export FILE.py:FUNCTION --quantize SCHEME, with
    the same options. `pumice compare` says what it costs in accuracy.
    """
    if source.endswith(".pt2"):
        raise click.UsageError("a .pt2 file has no layers any more: name the function that makes the model")
    module, _, _, dynamic_shapes = load_source(source)
    _, summary = quantized(module, scheme, dynamic_shapes, **how)
    click.echo(summary)
