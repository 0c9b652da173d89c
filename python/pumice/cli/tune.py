# SPDX-License-Identifier: Apache-2.0
"""`pumice tune`: the fastest kernels for a model on this device, measured and kept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from pumice import _pumice
from pumice.cli import tables
from pumice.cli.kernel import CASE_HELP, common, given_options, grid_option, run_kernels

COLUMNS = ("product", "table's kernel", "us", "best kernel", "us", "spread", "gain", "kept")


@click.command(epilog=CASE_HELP)
@click.argument("model", required=False, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--size", "sizes", multiple=True, help="A dynamic size by its name: seq=128; repeatable.")
@click.option(
    "--budget",
    default=60.0,
    show_default=True,
    type=click.FloatRange(0),
    help="Seconds in all; what is measured until then is kept.",
)
@common
@grid_option
@click.option("--kernel", "kernels", multiple=True, help="Only this kernel, and the table's; repeatable.")
@click.option(
    "--seconds",
    default=0.5,
    show_default=True,
    type=click.FloatRange(0),
    help="For each kernel that comes near the best.",
)
@click.option(
    "--rotate", type=click.IntRange(1), metavar="MB", help="Size of all copies of the weights; default 256, on CPUs 64."
)
def tune(model: Path | None, as_json: bool, rotate: int | None, **options: Any) -> None:
    """Measure which kernels are the fastest for a model on this device, and keep them.

    \b
    pumice tune m.pumice                                    its matrix products, the heaviest first
    pumice tune m.pumice --size seq=77 --budget 20
    pumice tune --op linear_q4gsw --case "m=1|16,n=4096,k=4096,g=32,dtype=f16"

    Which kernel of a matrix product is the fastest depends on the device. A table chooses, which was measured on some;
    tune measures on yours, and from then on every program of yours takes what it found. Where sizes are dynamic, it
    measures at those of the export and at 1, 4, 16, 64, 256 and 1024, or at --size. Another kernel than the table's is
    taken only if it is faster by more than the spread of the times, and computes the right numbers. Each product is
    kept as soon as it is measured: Ctrl-C and the budget lose nothing, and tune may be run again.

    The file is in the cache folder, for this device, driver, build and --features; PUMICE_FEATURES=untuned leaves it
    aside. `pumice profile` marks what was tuned.
    """
    given = given_options(options)
    has_products = any(options[name] for name in ("ops", "cases", "grid"))
    if has_products == (model is not None):
        raise click.UsageError("give a model, or products by --op, --case and --grid")
    if model is not None:
        given["model"] = str(model)
    if rotate:
        given["rotate_bytes"] = rotate << 20
    rows: list[dict] = []
    kept: dict[str, Any] = {}

    def show(fact: dict) -> None:
        if fact["event"] == "row":
            rows.append(fact)
        if fact["event"] == "kept":
            kept.update(fact)

    try:
        facts = run_kernels(_pumice.kernel_tune, given, show)
    except KeyboardInterrupt:
        if not as_json:
            _print(rows)
            tables.line(f"{len(rows)} products measured and kept")
        raise
    if as_json:
        click.echo(json.dumps({**facts, "kept": kept}))
    else:
        _print(rows)
        tables.line(
            f"{kept['measured']} of {kept['products']} products measured; {kept['entries']} kept in {kept['path']}"
        )
    if any(row["status"] != "ok" for row in rows):
        raise click.exceptions.Exit(1)


def _print(rows: list[dict]) -> None:
    table = tables.new(*COLUMNS, left=("product", "table's kernel", "best kernel", "kept"))
    for row in rows:
        if row["status"] == "ok":
            table_us, best_us, spread = (f"{row[key]:.2f}" for key in ("table_us", "best_us", "spread_us"))
            tables.add(
                table, row["title"], row["table"], table_us, row["best"], best_us, spread, f"{row['gain']:.2f}",
                row["tuned"],
            )  # fmt: skip
        for wrong in row.get("wrong", ()):
            tables.line(f"{row['title']}: {wrong['kernel']} is wrong here: {wrong['why']}", style="bold red")
    if table.row_count:
        tables.show(table)
