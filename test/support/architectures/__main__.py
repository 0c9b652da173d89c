# SPDX-License-Identifier: Apache-2.0
"""python -m support.architectures    measures every model and writes the table of docs/models.md"""

from __future__ import annotations

import copy
import os
from pathlib import Path

import torch

import pumice
from support.architectures import ARCHITECTURES, Architecture

PAGE = Path(__file__).parents[3] / "docs/models.md"
BEGIN, END = "<!-- from test/support/architectures -->\n", "<!-- end -->\n"


@torch.no_grad()
def worst_error(architecture: Architecture) -> float:
    """Of all calls and results: the largest difference from eager PyTorch by the largest element."""
    torch.manual_seed(0)
    model, calls = architecture.make()
    session, worst = pumice.load(bytes(pumice.export(copy.deepcopy(model), calls[0]))), 0.0
    for inputs in calls:
        for got, want in zip(_tensors(session(*inputs)), _tensors(model(*inputs)), strict=True):
            difference = (got.double() - want.double()).abs().max() / want.double().abs().max()
            worst = max(worst, float(difference))
    return worst


def _tensors(results: torch.Tensor | tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
    return (results,) if isinstance(results, torch.Tensor) else results


def row(architecture: Architecture) -> str:
    if architecture.refused:
        return f"| {architecture.name} | {architecture.part} | refused: {architecture.instead} | |\n"
    worst = worst_error(architecture)
    return f"| {architecture.name} | {architecture.part} | one program | {f'{worst:.1e}' if worst else '0'} |\n"


def main() -> None:
    os.environ.setdefault("PUMICE_DEVICE", "llvmpipe")
    table = "| model | what of it | in Pumice | worst error |\n|---|---|---|---|\n" + "".join(map(row, ARCHITECTURES))
    start, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    PAGE.write_text(start + BEGIN + table + END + rest.partition(END)[2], encoding="utf-8")


main()
