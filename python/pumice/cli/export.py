# SPDX-License-Identifier: Apache-2.0
"""`pumice export`."""

from __future__ import annotations

import importlib.util
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from pumice.cli.inputs import batches
from pumice.format.text import size_text


def load_source(source: str) -> tuple[Any, tuple, dict, Any]:
    """(module or ExportedProgram, args, kwargs, dynamic_shapes) of FILE.py:FUNCTION or FILE.pt2."""
    import torch

    from pumice.quantizer import quiet_torchao

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
    with quiet_torchao(), _errors_of(path, f"'{name}'"):
        spec.loader.exec_module(module)
    if not callable(getattr(module, function, None)):
        raise click.UsageError(f"'{name}' has no function '{function}'")
    with quiet_torchao(), _errors_of(path, f"{function}() of '{name}'"):
        returned = getattr(module, function)()
    if not isinstance(returned, tuple) or not 2 <= len(returned) <= 4:
        raise click.UsageError(
            f"{source} must return (module, args[, kwargs[, dynamic_shapes]]), not {type(returned).__name__}"
        )
    return (*returned, *((), {}, None)[len(returned) - 1 :])


@contextmanager
def _errors_of(path: Path, what: str) -> Iterator[None]:
    """An exception of the user's own file becomes a message with the frames from that file on, without ours."""
    try:
        yield
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        of_file = (i for i, frame in enumerate(frames) if Path(frame.filename).resolve() == path.resolve())
        first = next(of_file, len(frames))
        lines = [*traceback.format_list(frames[first:]), *traceback.format_exception_only(error)]
        raise click.ClickException(f"{what} raised {type(error).__name__}\n{''.join(lines).rstrip()}") from None


@click.command()
@click.argument("source", metavar="FILE.py:FUNCTION | FILE.pt2")
@click.option(
    "-o", "--output", required=True, type=click.Path(dir_okay=False, path_type=Path), help="The file to write."
)
@click.option(
    "--quantize",
    type=click.Choice(["int4", "int8", "8da4w", "8da8w", "static8"]),
    help="Quantize the linear layers first (torchao); static8: convolutions, too, in int8 from end to end (PT2E).",
)
@click.option("--group-size", default=32, show_default=True, help="Weights that share a scale, for the 4-bit schemes.")
@click.option(
    "--layers",
    multiple=True,
    metavar="PATTERN",
    help="Quantize only layers of these names, as in 'encoder.*'; '!head' leaves head out. Repeatable.",
)
@click.option("--embeddings", type=click.Choice(["int4", "int8", "float"]), help="Quantize embeddings, too, or never.")
@click.option("--skip-unfit", is_flag=True, help="Leave layers as they are that the scheme does not fit.")
@click.option(
    "--calibration",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="For static8: a batch of what the model will see, .npy of its input or .npz of its inputs. Repeatable.",
)
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
@click.option("-v", "--verbose", is_flag=True, help="Print what happened to every node.")
@click.option("--strict", is_flag=True, help="Capture with torch.export's strict mode.")
def export(
    source: str, output: Path, quantize: str | None, group_size: int, layers: tuple[str, ...], embeddings: str | None,
    skip_unfit: bool, calibration: tuple[Path, ...], report: Path | None, storage: str, verbose: bool, strict: bool,
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
        with console.status(f"quantizing to {quantize}"):
            how: dict[str, Any] = {"filter": layers or None, "embeddings": embeddings, "skip_unfit": skip_unfit}
            if calibration or quantize == "static8":
                how |= {"calibration": batches(calibration), "dynamic_shapes": dynamic_shapes}
            made: list[Any] = []
            module = pumice.quantize(module, quantize, group_size=group_size, **how, summary=made.append)
        click.echo(f"{made[0]}\n", err=True)
    elif layers or embeddings or skip_unfit or calibration:
        given = "--layers, --embeddings, --skip-unfit and --calibration"
        raise click.UsageError(f"{given} say how --quantize quantizes: give it as well")
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
    click.echo(str(program.report) if verbose else program.report.summary(), err=True)
    click.echo(f"{output}: {size_text(output.stat().st_size)}")
