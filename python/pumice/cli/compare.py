# SPDX-License-Identifier: Apache-2.0
"""`pumice compare`."""

from __future__ import annotations

import copy
import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np
from rich.console import Console

from pumice.cli import tables
from pumice.cli.options import json_option
from pumice.cli.source import load_source

if TYPE_CHECKING:
    from pumice.comparison import Difference, LayerDifference


@click.command()
@click.argument("source", metavar="FILE.py:FUNCTION")
@click.argument("file", required=False, metavar="[FILE.pumice]", type=click.Path(exists=True, path_type=Path))
@click.option("--quantize", type=click.Choice(["int4", "int8", "8da4w", "8da8w"]), help="As `pumice export` does.")
@click.option("--group-size", default=32, show_default=True, help="Weights that share a scale, for the 4-bit schemes.")
@click.option(
    "--layers", multiple=True, metavar="PATTERN", help="Quantize only layers of these names; '!head': not it."
)
@click.option(
    "--budget",
    default=30.0,
    show_default=True,
    help="Signal to noise, in dB, that the device must keep against eager PyTorch in every layer.",
)
@click.option("--device", help="Index, part of the name, or UUID, as `pumice devices` lists them. [$PUMICE_DEVICE]")
@json_option
def compare(
    source: str, file: Path | None, quantize: str | None, group_size: int, layers: tuple[str, ...], budget: float,
    device: str | None, as_json: bool,
) -> None:  # fmt: skip
    """Compare a model layer by layer: the device with eager PyTorch, and quantized with float.

    FUNCTION is that of `pumice export`; its example inputs are run. With --quantize the table shows what each layer
    costs alone, given what the float model gives it, and what has added up. With FILE.pumice the results of that file
    are compared, too. Exit code 1: a layer, or a result of the file, is below the budget. Floats keep more than 100 dB;
    where activations are rounded to integers, one that falls the other way is seen: some 35 dB in deep models.
    """
    import pumice
    from pumice.comparison import Difference, compare_layers

    module, args, kwargs, _ = load_source(source)
    original = None
    console = Console(stderr=True)
    if quantize:
        original = copy.deepcopy(module)
        pumice.quantize(module, quantize, group_size=group_size, filter=layers or None)
    with console.status("exporting and running"):
        rows = compare_layers(module, args, kwargs, original=original, device=device)
    results: list[Difference] = []
    if file:
        import torch

        with pumice.load(file, device=device) as session, torch.no_grad():
            got, want = _flat(session(*args, **kwargs)), _flat(module(*args, **kwargs))
        if len(got) != len(want):
            raise click.UsageError(f"{file} has {len(got)} results, the model {len(want)}")
        results = [Difference.of(a, b) for a, b in zip(got, want, strict=True)]
    below = [row.name for row in rows if row.device.snr < budget]
    below += [f"result {index} of {file}" for index, each in enumerate(results) if each.snr < budget]
    if as_json:
        facts = {"schema": 1, "budget": budget, "layers": [asdict(row) for row in rows]}
        click.echo(json.dumps(_finite(facts | {"results": [asdict(each) for each in results], "below": below})))
    else:
        _show(rows, quantize)
        for index, each in enumerate(results):
            tables.line(f"result {index} of {file}: {_db(each.snr)} dB, {_worst(each)}")
        tables.line(f"below {budget:g} dB, first: {below[0]}" if below else f"every layer keeps {budget:g} dB")
    if below:
        raise click.exceptions.Exit(1)


def _show(rows: list[LayerDifference], quantize: str | None) -> None:
    quantized = ("alone dB", "so far dB") if quantize else ()
    table = tables.new(
        "layer", "type", "device dB", *quantized, "worst element", left=["layer", "type", "worst element"]
    )
    for row in rows:
        costs = [_db(each.snr) if each else "-" for each in (row.alone, row.so_far)] if quantize else []
        tables.add(table, row.name, row.type, _db(row.device.snr), *costs, _worst(row.device))
    title = f"device against eager PyTorch; alone, so far: {quantize} against float" if quantize else ""
    tables.show(table, title or "device against eager PyTorch")
    costly = [row for row in rows if row.alone is not None and math.isfinite(row.alone.snr)]
    if costly:
        least = min(costly, key=lambda row: row.alone.snr)
        tables.line(f"{least.name} costs the most by itself: {_db(least.alone.snr)} dB are left")


def _db(snr: float) -> str:
    return "equal" if snr == math.inf else f"{snr:.1f}"


def _worst(difference: Difference) -> str:
    if difference.snr == math.inf:
        return ""
    return f"{difference.got:.6g}, wanted {difference.wanted:.6g}, at {list(difference.at)}"


def _flat(results: Any) -> list[Any]:
    """The tensors of a nesting, in order."""
    import torch

    leaves = torch.utils._pytree.tree_leaves(results)
    return [torch.as_tensor(leaf) for leaf in leaves if isinstance(leaf, torch.Tensor | np.ndarray)]


def _finite(facts: Any) -> Any:
    """JSON has no infinity: null stands for it."""
    if isinstance(facts, dict):
        return {key: _finite(value) for key, value in facts.items()}
    if isinstance(facts, list | tuple):
        return [_finite(value) for value in facts]
    return None if isinstance(facts, float) and not math.isfinite(facts) else facts
