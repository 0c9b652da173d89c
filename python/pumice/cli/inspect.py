# SPDX-License-Identifier: Apache-2.0
"""`pumice inspect` and `pumice check`: what is in a file, without a device."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import click

from pumice.cli import tables
from pumice.cli.graph import graph
from pumice.cli.options import json_option, model_argument
from pumice.format.text import size_text


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
@click.option(
    "--graph",
    "graph_file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Also write the graph, with the layers of the model, as Model Explorer opens it (.json).",
)
def inspect(model: Path, as_json: bool, ops: bool, graph_file: Path | None) -> None:
    """Show the header, operators, values, memory plan and constants of a file; no device is touched."""
    import pumice

    facts = pumice.inspect(model)
    if graph_file:
        graph_file.write_text(graph(facts, model.name), encoding="utf-8")
        click.echo(f"{graph_file}: written, for Model Explorer (pip install ai-edge-model-explorer)", err=True)
    if as_json:
        click.echo(json.dumps({"schema": 1, **facts}, indent=1))
        return
    header = facts["header"]
    tables.line(
        f"{model.name}: format {header['version']}, {size_text(header['file_bytes'])} "
        f"({size_text(header['constant_bytes'])} constants), written by {header['producer']}, "
        f"precision {header['precision']}"
    )
    for method in facts["methods"]:
        show_method(method, ops)
    show_constants(facts["constants"])


def dims(value: dict) -> str:
    """A value's dtype, sizes and storage: f32[2, 3]."""
    storage = "" if value["storage"] == "buffer" else f" {value['storage']}"
    return f"{value['dtype']}[{', '.join(str(dim) for dim in value['dims'])}]{storage}"


def show_method(method: dict, every_op: bool) -> None:
    """Prints a method: symbols, inputs and outputs, operators, memory plan."""
    tables.line(f"\nmethod {method['name']}", style="bold")
    for symbol in method["symbols"]:
        tables.line(f"  {symbol['name']} in {symbol['min']}..{symbol['max']} (at export {symbol['hint']})")
    for role in ("inputs", "outputs", "states"):
        for value in method[role]:
            tables.line(f"  {role[:-1]:6} {value['name']}: {dims(value)}")
    for argument in method["fixed"]:
        tables.line(f"  fixed  {argument['name']} = {argument['value']}")
    between = Counter(value["dtype"] for value in method["plan"]["values"] if value["kind"] == "scratch")
    if between:
        text = ", ".join(f"{count} {dtype}" for dtype, count in between.most_common())
        tables.line(f"  values between inputs and outputs: {text}")
    stored = Counter(value["storage"] for value in method["plan"]["values"])
    if len(stored) > 1:
        text = ", ".join(f"{count} {storage}" for storage, count in stored.most_common())
        tables.line(f"  values: {text}")
    if every_op:
        table = tables.new(
            "#", "operator", "dispatches", "outputs", "from", left=["operator", "outputs", "from"], plain=True
        )
        for index, op in enumerate(method["ops"]):
            outputs = " ".join(map(dims, op["outputs"]))
            tables.add(table, str(index), op["name"], str(op["dispatches"]), outputs, op["source"])
    else:
        table = tables.new("calls", "operator", left=["operator"], plain=True)
        for name, count in Counter(op["name"] for op in method["ops"]).most_common():
            tables.add(table, str(count), name)
    tables.show(table)
    run = method["run"]
    tables.line(
        f"  at the exported sizes, on a device with what Vulkan 1.1 promises: {run['dispatches']} dispatches, "
        f"{run['waits']} of which wait for others"
    )
    plan = method["plan"]
    sizes = {key: size_text(plan[f"{key}_bytes"]) for key in ("arena", "naive", "lower_bound")}
    tables.line(
        f"  memory plan at the exported sizes: arena {sizes['arena']} (without reuse {sizes['naive']}, lower bound "
        f"{sizes['lower_bound']})"
    )
    if plan["images"]:
        size = size_text(sum(image["bytes"] for image in plan["images"]))
        tables.line(f"  {len(plan['images'])} images, shared by values in textures: {size}")


def show_constants(constants: list[dict]) -> None:
    """Prints the number of constants and the largest ones."""
    tables.line(f"\n{len(constants)} constants, the largest", style="bold")
    table = tables.new("bytes", "key", left=["key"], plain=True)
    for constant in sorted(constants, key=lambda c: -c["bytes"])[:10]:
        tables.add(table, str(constant["bytes"]), constant["key"])
    tables.show(table)
