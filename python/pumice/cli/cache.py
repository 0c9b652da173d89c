# SPDX-License-Identifier: Apache-2.0
"""`pumice cache`: compiled kernels as a folder that goes with a model to other machines."""

from __future__ import annotations

import json
from pathlib import Path

import click

from pumice.cli import tables
from pumice.cli.options import Commands, json_option
from pumice.cli.warm import sizes_option, warmed


@click.group(cls=Commands)
def cache() -> None:
    """Compiled kernels as a folder, for machines with the same GPU and driver."""


@cache.command()
@click.argument("models", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--for", "device", help="The device to compile for, which is here. [$PUMICE_DEVICE]")
@click.option("--features", help="As they will be where the models run. [$PUMICE_FEATURES]")
@click.option(
    "--to", "folder", required=True, type=click.Path(file_okay=False, path_type=Path), help="A folder: new, or empty."
)
@sizes_option
@json_option
def build(models: tuple[Path, ...], device, features, folder: Path, sizes, as_json: bool) -> None:
    """Compile models ahead into a folder that can be copied.

    \b
    pumice cache build m.pumice --for NVIDIA --to cache          at the sizes of the export
    pumice cache build a.pumice b.pumice --size seq=16,64 --to cache

    A driver takes what was compiled only on the same GPU with the same driver version; anywhere else it is not
    looked at, and the kernels are compiled. On the other machine copy the folder with its file `key`, for the user
    who runs the model, writable by nobody else, and name it: PUMICE_CACHE_DIR, or cache_dir of pumice.load.
    Drivers do not check what they are given: take such a folder only from where you take programs.
    """
    if folder.is_dir() and any(folder.iterdir()):
        raise click.UsageError(f"the folder {folder} is not empty: name a new one, so that nothing else goes with it")
    rows = []
    try:
        for model in models:
            name, times = warmed(model, (), sizes, device=device, features=features, cache_dir=folder.absolute())
            rows += [{"model": model.name, "device": name, **row} for row in times]
    except BaseException:  # what was made so far would be in the way of the next try
        for path in folder.glob("*"):
            path.unlink()
        raise
    files = {path.name: path.stat().st_size for path in sorted(folder.iterdir())}
    if as_json:
        click.echo(json.dumps({"schema": 1, "rows": rows, "files": files}))
        return
    table = tables.new("model", "shape", "ms", left=["model", "shape"])
    for row in rows:
        tables.add(table, row["model"], row["shape"], f"{row['ms']:.1f}")
    tables.show(table, f"for {rows[0]['device']}")
    tables.line(f"{folder}: {', '.join(f'{name} ({size:,} bytes)' for name, size in files.items())}")
