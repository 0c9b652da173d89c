# SPDX-License-Identifier: Apache-2.0
"""`pumice inspect` and `pumice check`: what is in a file, without a device."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from pumice.cli.options import json_option, model_argument


@click.command()
@model_argument
def check(model: Path) -> None:
    """Run the reader's four gates over a file; no device is touched."""
    import pumice

    pumice.check(model)
    click.echo(f"{model}: ok")


@click.command()
@model_argument
@json_option
@click.option("--ops", is_flag=True, help="List every operator call instead of counting them.")
def inspect(model: Path, as_json: bool, ops: bool) -> None:
    """Show the header, operators, values, memory plan and constants of a file; no device is touched."""
    import pumice

    facts = pumice.inspect(model)
    if as_json:
        click.echo(json.dumps({"schema": 1, **facts}, indent=1))
        return
    console = Console()
    header = facts["header"]
    console.print(
        f"{model.name}: format {header['version']}, {header['file_bytes'] / 1e6:.2f} MB "
        f"({header['constant_bytes'] / 1e6:.2f} MB constants), written by {header['producer']}",
        highlight=False,
    )
    for method in facts["methods"]:
        show_method(console, method, ops)
    show_constants(console, facts["constants"])


def dims(value: dict) -> str:
    storage = "" if value["storage"] == "buffer" else f" {value['storage']}"
    return f"{value['dtype']}[{', '.join(str(dim) for dim in value['dims'])}]{storage}"


def show_method(console: Console, method: dict, every_op: bool) -> None:
    console.print(f"\nmethod {method['name']}", style="bold", highlight=False)
    for symbol in method["symbols"]:
        console.print(
            f"  {symbol['name']} in {symbol['min']}..{symbol['max']} (at export {symbol['hint']})", highlight=False
        )
    for role in ("inputs", "outputs", "states"):
        for value in method[role]:
            console.print(f"  {role[:-1]:6} {value['name']}: {dims(value)}", highlight=False, markup=False)
    for argument in method["fixed"]:
        console.print(f"  fixed  {argument['name']} = {argument['value']}", highlight=False, markup=False)
    between = Counter(value["dtype"] for value in method["plan"]["values"] if value["kind"] == "scratch")
    if between:
        text = ", ".join(f"{count} {dtype}" for dtype, count in between.most_common())
        console.print(f"  values between inputs and outputs: {text}", highlight=False)
    stored = Counter(value["storage"] for value in method["plan"]["values"])
    if len(stored) > 1:
        text = ", ".join(f"{count} {storage}" for storage, count in stored.most_common())
        console.print(f"  values: {text}", highlight=False)
    table = Table(box=None, padding=(0, 2))
    if every_op:
        for column in ("#", "operator", "outputs", "from"):
            table.add_column(column)
        for index, op in enumerate(method["ops"]):
            table.add_row(str(index), op["name"], " ".join(dims(value) for value in op["outputs"]), op["source"])
    else:
        for column in ("calls", "operator"):
            table.add_column(column, justify="right" if column == "calls" else "left")
        for name, count in Counter(op["name"] for op in method["ops"]).most_common():
            table.add_row(str(count), name)
    console.print(table)
    plan = method["plan"]
    console.print(
        f"  memory plan at the exported sizes: arena {plan['arena_bytes'] / 1e6:.2f} MB "
        f"(without reuse {plan['naive_bytes'] / 1e6:.2f} MB, lower bound {plan['lower_bound_bytes'] / 1e6:.2f} MB)",
        highlight=False,
    )
    if plan["images"]:
        size = sum(image["bytes"] for image in plan["images"])
        console.print(
            f"  {len(plan['images'])} images, shared by values in textures: {size / 1e6:.2f} MB", highlight=False
        )


def show_constants(console: Console, constants: list[dict]) -> None:
    console.print(f"\n{len(constants)} constants, the largest", style="bold", highlight=False)
    table = Table(box=None, padding=(0, 2))
    for column in ("bytes", "key"):
        table.add_column(column, justify="right" if column == "bytes" else "left")
    for constant in sorted(constants, key=lambda c: -c["bytes"])[:10]:
        table.add_row(str(constant["bytes"]), constant["key"])
    console.print(table)
