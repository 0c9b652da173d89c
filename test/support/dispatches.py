# SPDX-License-Identifier: Apache-2.0
"""How many dispatches a program takes on a device that is not here."""

from __future__ import annotations

import json
from pathlib import Path

import pumice
from support.command_line import BIN, run


def dispatches(program: pumice.Program, folder: Path) -> dict[str, int]:
    """Of each operator, on an H100."""
    (folder / "m.pumice").write_bytes(bytes(program))
    words = run(BIN / "pumice-rt", "inspect", folder / "m.pumice", "--profile", "h100", "--json").stdout
    counts: dict[str, int] = {}
    for op in json.loads(words)["methods"][0]["ops"]:
        counts[op["name"]] = counts.get(op["name"], 0) + op["dispatches"]
    return counts
