# SPDX-License-Identifier: Apache-2.0
"""`pumice export`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from rich.console import Console

from pumice.cli.quantize import SCHEMES, how_options, quantized
from pumice.cli.source import load_source
from pumice.format.text import size_text


@click.command()
@click.argument("source", metavar="FILE.py:FUNCTION | FILE.pt2")
@click.option(
    "-o", "--output", required=True, type=click.Path(dir_okay=False, path_type=Path), help="The file to write."
)
@click.option(
    "--quantize",
    type=SCHEMES,
    help="Quantize the linear layers first (torchao); static8: convolutions, too, in int8 from end to end (PT2E).",
)
@how_options
@click.option(
    "--report", type=click.Path(dir_okay=False, path_type=Path), help="Write what happened to every node as JSON."
)
@click.option(
    "--storage",
    type=click.Choice(["buffer", "texture"]),
    default="buffer",
    show_default=True,
    help="What activations and packed weights are on the device, where operators have a choice.",
)
@click.option(
    "--precision",
    type=click.Choice(["split", "fp32", "fp16"]),
    default="split",
    show_default=True,
    help="What products of fp32 are computed in: split, also as sums of fp16 products, where faster; fp32 alone. "
    "Or fp16: weights and what is between inputs and results.",
)
@click.option("-v", "--verbose", is_flag=True, help="Print what happened to every node.")
@click.option("--strict", is_flag=True, help="Capture with torch.export's strict mode.")
def export(
    source: str, output: Path, quantize: str | None, report: Path | None, storage: str, precision: str, verbose: bool,
    strict: bool, **how: Any,
) -> None:  # fmt: skip
    """Turn a PyTorch model into a .pumice file.

    FUNCTION returns (module, args[, kwargs[, dynamic_shapes]]), the arguments of torch.export.export; a program saved
    by torch.export.save works, too. Both are programs that run as you: FILE.py is executed, and FILE.pt2 is read by
    torch.export.load, which unpickles. Give only files that you trust; a .pumice file holds no code.
    When an operator cannot run, nothing is written: every reason is listed with the line of your model.
    """
    console = Console(stderr=True)
    with console.status("loading PyTorch"):
        import pumice
    module, args, kwargs, dynamic_shapes = load_source(source)
    if quantize:
        module, summary = quantized(module, quantize, dynamic_shapes, **how)
        click.echo(f"{summary}\n", err=True)
    elif how["layers"] or how["embeddings"] or how["skip_unfit"] or how["calibration"]:
        given = "--layers, --embeddings, --skip-unfit and --calibration"
        raise click.UsageError(f"{given} say how --quantize quantizes: give it as well")
    with console.status("exporting"):
        options = pumice.ExportOptions(strict=strict, storage=storage, precision=precision)
        try:
            program = pumice.export(module, args, kwargs, dynamic_shapes=dynamic_shapes, options=options)
        except pumice.UnsupportedError as error:
            if report and getattr(error, "report", None) is not None:
                report.write_text(error.report.to_json(), encoding="utf-8")
            raise
    with console.status(f"writing {output}"):
        program.save(output)
    if report:
        report.write_text(program.report.to_json(), encoding="utf-8")
    click.echo(str(program.report) if verbose else program.report.summary(), err=True)
    click.echo(f"{output}: {size_text(output.stat().st_size)}")
