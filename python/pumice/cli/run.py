# SPDX-License-Identifier: Apache-2.0
"""`pumice run`."""

from __future__ import annotations

from pathlib import Path

import click
import numpy as np

from pumice.cli.options import device_options, model_argument


@click.command()
@model_argument
@click.option(
    "--inputs",
    "-i",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="One .npy file for each input, in order. Repeatable.",
)
@click.argument("more_inputs", nargs=-1, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--outputs",
    "-o",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for the outputs, one .npy file each.",
)
@device_options
def run(
    model: Path,
    inputs: tuple[Path, ...],
    more_inputs: tuple[Path, ...],
    outputs: Path | None,
    device,
    features,
    cache_dir,
) -> None:
    """Run a model once: .npy files in, .npy files out.

    \b
    pumice run m.pumice --inputs ids.npy mask.npy --outputs out/
    """
    import pumice

    arrays = []
    for path in (*inputs, *more_inputs):
        try:
            arrays.append(np.load(path, allow_pickle=False))
        except (ValueError, OSError) as error:
            raise click.UsageError(f"{path} is not a .npy file: {error}") from None
    session = pumice.load(model, device=device, features=features, cache_dir=cache_dir)
    results = session.run_flat(arrays)
    if outputs:
        outputs.mkdir(parents=True, exist_ok=True)
    for spec, result in zip(session.outputs, results, strict=True):
        text = f"{spec.name}: {result.dtype} {list(result.shape)}"
        if outputs:
            path = outputs / f"{spec.name}.npy"
            np.save(path, result)
            text += f" -> {path}"
        elif result.size <= 64:
            text += f"\n{result}"
        click.echo(text)
