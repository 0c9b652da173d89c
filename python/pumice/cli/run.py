# SPDX-License-Identifier: Apache-2.0
"""`pumice run`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import click
import numpy as np

from pumice.cli.inputs import read_npy
from pumice.cli.options import budget_options, device_options, model_argument
from pumice.format.replacing import replacing

# Names that Windows reserves for devices, with any suffix.
_DEVICE = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])(\.|$)", re.IGNORECASE)
_MAX_BYTES = 200


def file_names(names: Sequence[str]) -> list[str]:
    """A file name for each output: it names a file inside of a folder on every system, and no two are the same.

    The name comes from a file that may be hostile. ASCII letters, digits, '_', '-' and '.' stay; other bytes, a '.' or
    '-' at the start and the first letter of a device of Windows become %XX. '~' and the output's number follow a name
    that is empty, was cut at 200 bytes, or differs from an earlier one by no more than case. pumice-rt does the same.
    """
    files: list[str] = []
    taken: set[str] = set()
    for index, name in enumerate(names):
        escape_first = name[:1] in (".", "-") or _DEVICE.match(name) is not None
        text = "".join(
            chr(byte) if re.match(rb"[A-Za-z0-9_.-]", bytes([byte])) and (at or not escape_first) else f"%{byte:02X}"
            for at, byte in enumerate(name.encode(errors="replace"))
        )
        if not text or len(text) > _MAX_BYTES or text.lower() in taken:
            text = f"{text[:_MAX_BYTES]}~{index}"
        taken.add(text.lower())
        files.append(f"{text}.npy")
    return files


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
@budget_options
def run(
    model: Path,
    inputs: tuple[Path, ...],
    more_inputs: tuple[Path, ...],
    outputs: Path | None,
    device,
    features,
    cache_dir,
    max_memory,
    max_seconds,
) -> None:
    """Run a model once: .npy files in, .npy files out.

    \b
    pumice run m.pumice --inputs ids.npy mask.npy --outputs out/
    """
    import pumice

    arrays = [read_npy(path) for path in (*inputs, *more_inputs)]
    budget = {"max_memory": max_memory, "max_seconds": max_seconds}
    session = pumice.load(model, device=device, features=features, cache_dir=cache_dir, **budget)
    results = session.run_flat(arrays)
    if outputs:
        outputs.mkdir(parents=True, exist_ok=True)
    files = file_names([spec.name for spec in session.outputs])
    for spec, result, file in zip(session.outputs, results, files, strict=True):
        text = f"{spec.name}: {result.dtype} {list(result.shape)}"
        if outputs:
            path = outputs / file
            with replacing(path) as output:
                np.save(output, result)
            text += f" -> {path}"
        elif result.size <= 64:
            text += f"\n{result}"
        click.echo(text)
