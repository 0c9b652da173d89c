# SPDX-License-Identifier: Apache-2.0
"""What docs/compatibility.md promises, as it is now: `python -m support.promises` records it in test/promises, beside a
file of this release and what it answered. Give it with a new minor version, or when something was added."""

from __future__ import annotations

import dataclasses
import inspect
import json
import re
from pathlib import Path
from typing import Any

import click
import numpy as np

import pumice
from pumice.cli import cli
from pumice.error_codes import CODES

FOLDER = Path(__file__).parents[1] / "promises"
ROOT = Path(__file__).parents[2]


def python_names() -> dict[str, list[str]]:
    """The public names with the parameters of functions, and of the public methods of classes."""
    found = {}
    for name in pumice.__all__:
        value = getattr(pumice, name)
        found[name] = _parameters(value)
        own = (
            [each for each in value.__mro__ if each.__module__.startswith("pumice")] if isinstance(value, type) else []
        )
        for method in {method for each in own for method in vars(each)}:
            if not method.startswith("_") and callable(getattr(value, method)):
                found[f"{name}.{method}"] = _parameters(getattr(value, method))
    return found


def _parameters(value: Any) -> list[str]:
    if dataclasses.is_dataclass(value):  # a __new__ that checks names hides them from inspect
        return [each.name for each in dataclasses.fields(value) if each.init]
    try:
        return list(inspect.signature(value).parameters)
    except (TypeError, ValueError):
        return []


def c_functions() -> dict[str, str]:
    """The functions of pumice.h and their declarations."""
    text = (ROOT / "runtime/include/pumice/pumice.h").read_text(encoding="utf-8")
    declared = re.findall(r"^PUMICE_API\s+([^;]+?\b(pumice_\w+)\([^;]*\));", text, re.MULTILINE)
    return {name: " ".join(declaration.split()) for declaration, name in declared}


def options(command: click.Command = cli, path: str = "pumice") -> dict[str, list[str]]:
    """The options of every command."""
    found = {path: sorted(word for each in command.params for word in each.opts if word.startswith("-"))}
    for name, inner in getattr(command, "commands", {}).items():
        found |= options(inner, f"{path} {name}")
    return found


def now() -> dict[str, Any]:
    """Everything that is promised."""
    codes = {name: code.number for name, code in CODES.items() if code.number is not None}
    return {"python": python_names(), "c": c_functions(), "options": options(), "codes": codes}


def sample() -> tuple[bytes, np.ndarray, np.ndarray]:
    """A file with quantized layers, a dynamic size and state; an input, and what three calls answer."""
    import torch
    from torch import nn

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 8))
            self.register_buffer("calls", torch.zeros(1))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.calls.add_(1)
            return self.layers(x).softmax(-1) + self.calls

    torch.manual_seed(0)
    model = Model().eval()
    pumice.quantize(model, "int4")
    rows = torch.export.Dim("rows", min=1, max=64)
    data = bytes(pumice.export(model, (torch.randn(3, 32),), dynamic_shapes=({0: rows},)))
    x = np.random.default_rng(0).standard_normal((5, 32), np.float32)
    with torch.no_grad():
        return data, x, np.stack([model(torch.from_numpy(x)).numpy() for _ in range(3)])


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / "recorded.json").write_text(json.dumps(now(), indent=1, sort_keys=True) + "\n", encoding="utf-8")
    release = ".".join(pumice.__version__.split(".")[:2])
    if not (FOLDER / f"{release}.pumice").exists():  # a file of a release stays as it was
        data, x, answers = sample()
        (FOLDER / f"{release}.pumice").write_bytes(data)
        np.savez(FOLDER / f"{release}.npz", x=x, answers=answers)
