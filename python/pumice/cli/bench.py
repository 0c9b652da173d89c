# SPDX-License-Identifier: Apache-2.0
"""`pumice bench` and `pumice profile`."""

from __future__ import annotations

import json
import time
from pathlib import Path

import click
import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from pumice.cli.options import device_options, json_option, model_argument, parse_shapes, random_inputs, shape_option


@click.command()
@model_argument
@shape_option
@click.option("--runs", "-r", default=50, show_default=True, type=click.IntRange(1), help="Timed runs.")
@click.option("--warmup", default=1.0, show_default=True, help="Seconds of untimed runs first (clocks and caches).")
@device_options
@json_option
def bench(model: Path, shapes, runs: int, warmup: float, device, features, cache_dir, as_json: bool) -> None:
    """Time whole calls: inputs in, submit, wait, outputs out; random inputs."""
    import pumice

    begin = time.perf_counter()
    session = pumice.load(model, device=device, features=features, cache_dir=cache_dir)
    loaded = time.perf_counter()
    inputs = random_inputs(session, parse_shapes(session, shapes))
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
    table = Table(title=f"{row['model']} on {row['device']}, driver {row['driver']}", title_justify="left")
    for column in ("shape", "runs", "median ms", "p10", "p90", "first run ms", "load ms"):
        table.add_column(column, justify="left" if column == "shape" else "right")
    table.add_row(
        row["shape"],
        str(runs),
        *(f"{row[k]:.3f}" for k in ("median_ms", "p10_ms", "p90_ms")),
        f"{row['first_run_ms']:.1f}",
        f"{row['load_ms']:.1f}",
    )
    Console().print(table)


@click.command()
@model_argument
@shape_option
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
    type=click.Choice(["call", "kernel"]),
    default="kernel",
    show_default=True,
    help="One row a call, or one a kernel.",
)
@device_options
@json_option
def profile(model: Path, shapes, runs: int, by: str, device, features, cache_dir, as_json: bool) -> None:
    """Time every operator on the device (timestamps around each dispatch); no rebuild needed."""
    import pumice

    session = pumice.load(model, device=device, features=features, cache_dir=cache_dir)
    inputs = random_inputs(session, parse_shapes(session, shapes))
    session.run_flat(inputs)
    samples = [session.profile_flat(inputs) for _ in range(runs)]
    rows = samples[-1]
    for index, row in enumerate(rows):
        row.microseconds = float(np.median([sample[index].microseconds for sample in samples]))
    if as_json:
        click.echo(json.dumps({"schema": 1, "device": session.device.name, "rows": [row.to_dict() for row in rows]}))
        return
    Console().print(profile_table(rows, by, session.device.name))


def profile_table(rows: list, by: str, device: str) -> Table:
    """Rows of Session.profile as a table, grouped by kernel (most expensive first) or call by call."""
    total = sum(row.microseconds for row in rows) or 1.0
    table = Table(title=f"{device}: {total:.1f} us in {len(rows)} dispatches", title_justify="left")
    for column in ("operator", "kernel", "shape" if by == "call" else "calls", "us", "%", "GB/s"):
        table.add_column(column, justify="left" if column in ("operator", "kernel", "shape") else "right")
    groups: dict = {}
    for index, row in enumerate(rows):
        key = index if by == "call" else (row.operator, row.kernel)
        groups.setdefault(key, []).append(row)
    order = list(groups.values())
    if by == "kernel":
        order.sort(key=lambda group: -sum(row.microseconds for row in group))
    for group in order:
        us = sum(row.microseconds for row in group)
        rate = sum(row.bytes for row in group) / us / 1e3 if us else 0.0
        what = group[0].shape if by == "call" else str(len(group))
        table.add_row(group[0].operator, group[0].kernel, what, f"{us:.1f}", f"{100 * us / total:.1f}", f"{rate:.1f}")
    return table
