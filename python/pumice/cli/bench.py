# SPDX-License-Identifier: Apache-2.0
"""`pumice bench` and `pumice profile`."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from pumice.cli import tables
from pumice.cli.inputs import input_options
from pumice.cli.inputs import inputs as made_inputs
from pumice.cli.options import device_options, json_option, model_argument
from pumice.cli.trace import trace

if TYPE_CHECKING:
    from pumice import ProfileRow, Session


@click.command()
@model_argument
@input_options
@click.option("--runs", "-r", default=50, show_default=True, type=click.IntRange(1), help="Timed runs.")
@click.option("--warmup", default=1.0, show_default=True, help="Seconds of untimed runs first (clocks and caches).")
@device_options
@json_option
def bench(
    model: Path, shapes, sizes, files, runs: int, warmup: float, device, features, cache_dir, as_json: bool
) -> None:
    """Time whole calls: inputs in, submit, wait, outputs out; random inputs, or --inputs."""
    import pumice

    begin = time.perf_counter()
    session = pumice.load(model, device=device, features=features, cache_dir=cache_dir)
    loaded = time.perf_counter()
    inputs = made_inputs(session, shapes, sizes, files)
    session.run_flat(inputs)
    first = time.perf_counter()
    while time.perf_counter() - first < warmup:
        session.run_flat(inputs)
    console = Console(stderr=True)
    times = []
    for _ in track(
        range(runs), description="running", console=console, transient=True, disable=not console.is_terminal
    ):
        start = time.perf_counter()
        session.run_flat(inputs)
        times.append(1e3 * (time.perf_counter() - start))
    p10, median, p90 = (float(x) for x in np.percentile(times, (10, 50, 90)))
    row = {
        "model": model.name,
        "device": session.device.name,
        "driver": f"{session.device.driver} {session.device.driver_version}",
        "shape": ",".join(
            f"{s.name}={'x'.join(map(str, a.shape))}" for s, a in zip(session.inputs, inputs, strict=True)
        ),
        "runs": runs,
        "median_ms": median,
        "p10_ms": p10,
        "p90_ms": p90,
        "first_run_ms": 1e3 * (first - loaded),
        "load_ms": 1e3 * (loaded - begin),
    }
    if as_json:
        click.echo(json.dumps({"schema": 1, **row}))
        return
    table = tables.new("shape", "runs", "median ms", "p10", "p90", "first run ms", "load ms", left=["shape"])
    times_ms = (f"{row[key]:.3f}" for key in ("median_ms", "p10_ms", "p90_ms"))
    tables.add(table, row["shape"], str(runs), *times_ms, f"{row['first_run_ms']:.1f}", f"{row['load_ms']:.1f}")
    tables.show(table, f"{row['model']} on {row['device']}, driver {row['driver']}")


@click.command()
@model_argument
@input_options
@click.option(
    "--runs",
    "-r",
    default=20,
    show_default=True,
    type=click.IntRange(1),
    help="Profiled runs; the table shows medians.",
)
@click.option(
    "--by",
    type=click.Choice(["call", "kernel", "layer"]),
    default="kernel",
    show_default=True,
    help="A row for each call with its layer and operands, for each kernel, or for each layer of the model.",
)
@click.option(
    "--trace",
    "trace_file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Also write the last run as a trace that ui.perfetto.dev opens (.json).",
)
@device_options
@json_option
def profile(
    model: Path, shapes, sizes, files, runs: int, by: str, trace_file: Path | None, device, features, cache_dir,
    as_json: bool,
) -> None:  # fmt: skip
    """Time every operator on the device (timestamps around each dispatch); no rebuild needed."""
    import pumice

    session = pumice.load(model, device=device, features=features, cache_dir=cache_dir)
    inputs = made_inputs(session, shapes, sizes, files)
    last, rows = profile_runs(session, inputs, runs)
    if trace_file:
        trace_file.write_text(trace(last, f"{model.name} on {session.device.name}"), encoding="utf-8")
        click.echo(f"{trace_file}: written, for https://ui.perfetto.dev", err=True)
    if as_json:
        click.echo(json.dumps({"schema": 1, "device": session.device.name, "rows": [row.to_dict() for row in rows]}))
        return
    total = sum(row.microseconds for row in rows)
    title = f"{session.device.name}: {total:.1f} us in {len(rows)} dispatches"
    tables.show(profile_table(rows, by), f"{title}\n{split_text(session.precision, rows)}")


def split_text(precision: str, rows: list[ProfileRow]) -> str:
    """How many dispatches compute fp32 by split operands, and the program's precision."""
    return f"precision {precision}, {sum(row.split for row in rows)} of them products by split operands"


def profile_runs(session: Session, inputs: list[np.ndarray], runs: int) -> tuple[list[ProfileRow], list[ProfileRow]]:
    """The rows of the last of `runs` profiled runs, after one that warms up, and the same with the medians of all."""
    session.run_flat(inputs)
    samples = [session.profile_flat(inputs) for _ in range(runs)]
    times = (float(np.median([row.microseconds for row in same])) for same in zip(*samples, strict=True))
    return samples[-1], [replace(row, microseconds=us) for row, us in zip(samples[-1], times, strict=True)]


_COLUMNS = {
    "call": ("call", "layer", "operator", "kernel", "operands", "shape"),
    "kernel": ("operator", "kernel", "dispatches"),
    "layer": ("layer", "operators", "dispatches"),
}


def profile_table(rows: list[ProfileRow], by: str) -> Table:
    """Rows of Session.profile as a table: each, or those of a kernel or of a layer together, most expensive first."""
    total = sum(row.microseconds for row in rows) or 1.0
    left = ("layer", "operator", "operators", "kernel", "operands", "shape")
    columns = [name for name in _COLUMNS[by] if name != "operands" or tables.is_wide()]
    table = tables.new(*columns, "us", "%", "GB/s", left=left)
    groups: dict[Any, list[ProfileRow]] = {}
    for index, row in enumerate(rows):
        key = {"call": index, "kernel": (row.operator, row.kernel), "layer": row.layer}[by]
        groups.setdefault(key, []).append(row)
    order = list(groups.values())
    if by != "call":
        order.sort(key=lambda group: -sum(row.microseconds for row in group))
    for group in order:
        us = sum(row.microseconds for row in group)
        rate = sum(row.bytes for row in group) / us / 1e3 if us else 0.0
        numbers = f"{us:.1f}", f"{100 * us / total:.1f}", f"{rate:.1f}"
        tables.add(table, *_what(group, by), *numbers)
    return table


def _what(group: list[ProfileRow], by: str) -> tuple[str, ...]:
    row = group[0]
    if by == "call":
        call = "-" if row.call < 0 else str(row.call)
        operands = (row.operands,) if tables.is_wide() else ()
        return call, row.layer, row.operator, row.kernel, *operands, row.shape.rpartition("-> ")[2]
    if by == "kernel":
        return row.operator, row.kernel, str(len(group))
    operators = dict.fromkeys(each.operator for each in group)
    return row.layer or "(no layer)", " ".join(operators), str(len(group))
