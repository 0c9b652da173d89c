# SPDX-License-Identifier: Apache-2.0
"""`pumice export`."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import click
from rich.console import Console


def load_source(source: str) -> tuple[Any, tuple, dict, Any]:
    """(module or ExportedProgram, args, kwargs, dynamic_shapes) of FILE.py:FUNCTION or FILE.pt2."""
    import torch

    if source.endswith(".pt2"):
        if not Path(source).is_file():
            raise click.UsageError(f"no file '{source}'")
        return torch.export.load(source), (), {}, None
    name, colon, function = source.rpartition(":")
    if not colon:
        raise click.UsageError(f"'{source}' is neither FILE.py:FUNCTION nor a saved .pt2 file")
    path = Path(name)
    if not path.is_file():
        raise click.UsageError(f"no file '{name}'")
    sys.path.insert(0, str(path.resolve().parent))  # so that the file's own imports work, as when it is run
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise click.UsageError(f"'{name}' is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    if not hasattr(module, function):
        raise click.UsageError(f"'{name}' has no function '{function}'")
    returned = getattr(module, function)()
    if not isinstance(returned, tuple) or not 2 <= len(returned) <= 4:
        raise click.UsageError(
            f"{source} must return (module, args[, kwargs[, dynamic_shapes]]), not {type(returned).__name__}"
        )
    return (*returned, *((), {}, None)[len(returned) - 1 :])


@click.command()
@click.argument("source", metavar="FILE.py:FUNCTION | FILE.pt2")
@click.option(
    "-o", "--output", required=True, type=click.Path(dir_okay=False, path_type=Path), help="The file to write."
)
@click.option(
    "--quantize",
    type=click.Choice(["int4", "int8", "8da4w", "8da8w"]),
    help="Quantize the linear layers first (torchao).",
)
@click.option("--group-size", default=32, show_default=True, help="Weights that share a scale, for the 4-bit schemes.")
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
@click.option("--strict", is_flag=True, help="Capture with torch.export's strict mode.")
def export(
    source: str, output: Path, quantize: str | None, group_size: int, report: Path | None, storage: str, strict: bool
) -> None:
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
        with console.status(f"quantizing to {quantize}"):
            pumice.quantize(module, quantize, group_size=group_size)
    with console.status("exporting"):
        options = pumice.ExportOptions(strict=strict, storage=storage)
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
    console.print(str(program.report), highlight=False, markup=False)
    click.echo(f"{output}: {output.stat().st_size / 1e6:.1f} MB")
