# SPDX-License-Identifier: Apache-2.0
"""`pumice warm`: what a model's kernels compile to, made ahead and kept."""

from __future__ import annotations

import itertools
import json
import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click

from pumice.cli import tables
from pumice.cli.inputs import resolve
from pumice.cli.options import device_options, json_option, model_argument

sizes_option = click.option(
    "--size",
    "sizes",
    multiple=True,
    metavar="NAME=N,N,...",
    help="Numbers of a dynamic size by its name, as `pumice inspect` lists them: seq=16,64. With several names, every "
    "combination. Repeatable.",
)


@click.command()
@model_argument
@sizes_option
@click.option(
    "--shape",
    "shapes",
    multiple=True,
    metavar="NAME=AxBxC",
    help="Shape of one input, e.g. ids=1x128; other inputs follow where they share a size by name. Repeatable.",
)
@device_options
@json_option
def warm(model: Path, sizes, shapes, device, features, cache_dir, as_json: bool) -> None:
    """Compile a model's kernels ahead, so that no later run waits for that.

    \b
    pumice warm m.pumice                                 at the sizes of the export
    pumice warm m.pumice --size seq=16,64,256            at three lengths
    pumice warm m.pumice --size batch=1,8 --size seq=64  at two

    Which kernels run depends on the sizes. What is compiled is kept in the cache folder, for this device and driver:
    the first run of a later process takes them from there. In a process of your own, Session.warm and
    pumice.load(..., warm=[...]) also record the runs.
    """
    name, rows = warmed(model, shapes, sizes, device=device, features=features, cache_dir=cache_dir)
    if as_json:
        click.echo(json.dumps({"schema": 1, "model": model.name, "device": name, "rows": rows}))
        return
    table = tables.new("shape", "ms", left=["shape"])
    for row in rows:
        tables.add(table, row["shape"], f"{row['ms']:.1f}")
    tables.show(table, f"{model.name} on {name}")
    if (cache_dir or os.environ.get("PUMICE_CACHE_DIR", "")) == "off":
        tables.line("nothing is kept: the cache is off (--cache-dir, PUMICE_CACHE_DIR)", style="bold red")


def warmed(
    model: Path, shapes: Iterable[str], sizes: Iterable[str], **options: Any
) -> tuple[str, list[dict[str, Any]]]:
    """Loads a model with the options of pumice.load and prepares its runs: the device's name, and {"shape", "ms"} of
    the load and of each run."""
    import pumice

    begin = time.perf_counter()
    with pumice.load(model, **options) as session:
        rows = [{"shape": "load", "ms": 1e3 * (time.perf_counter() - begin)}]
        for one in itertools.product(*(_each(text) for text in sizes)):
            run = dict(zip((spec.name for spec in session.inputs), resolve(session, shapes, one), strict=True))
            begin = time.perf_counter()
            session.warm(run)
            shape = ",".join(f"{name}={'x'.join(map(str, sizes))}" for name, sizes in run.items())
            rows.append({"shape": shape, "ms": 1e3 * (time.perf_counter() - begin)})
        return session.device.name, rows


def _each(text: str) -> list[str]:
    """ "seq=16,64" as "seq=16" and "seq=64"; what is wrong with one of them is said where it is used."""
    name, _, numbers = text.partition("=")
    return [f"{name}={number}" for number in numbers.split(",")]
