# SPDX-License-Identifier: Apache-2.0
"""What a session dispatches, and how many dispatches a program takes on a device that is not here."""

from __future__ import annotations

import json
from pathlib import Path

import torch

import pumice
from support.command_line import BIN, ROOT, run


def kernels(session: pumice.Session, *inputs: torch.Tensor) -> list[str]:
    """Those of a run, without the transfers in and out that a GPU with memory of its own has."""
    return [row.kernel for row in session.profile(*inputs) if row.call >= 0 or row.kernel != "copy"]


def dispatches(program: pumice.Program, folder: Path) -> dict[str, int]:
    """Of each operator, on an H100."""
    (folder / "m.pumice").write_bytes(bytes(program))
    words = run(BIN / "pumice-rt", "inspect", folder / "m.pumice", "--profile", "h100", "--json").stdout
    counts: dict[str, int] = {}
    for op in json.loads(words)["methods"][0]["ops"]:
        counts[op["name"]] = counts.get(op["name"], 0) + op["dispatches"]
    return counts


def profiles_by_buffers(folder: Path, few: int) -> tuple[Path, Path]:
    """Profiles of an H100, and of one whose shaders bind only `few` buffers."""
    profile = json.loads((ROOT / "test/profiles/h100.json").read_text())
    paths = folder / "right.json", folder / "few.json"
    for path, buffers in zip(paths, (profile["max_storage_buffers"], few), strict=True):
        path.write_text(json.dumps(profile | {"max_storage_buffers": buffers}))
    return paths


def all_dispatches(file: Path, profile: Path) -> int:
    """Of a file, on the device of a profile."""
    facts = json.loads(run(BIN / "pumice-rt", "inspect", file, "--json", "--profile", profile).stdout)
    return facts["methods"][0]["run"]["dispatches"]
