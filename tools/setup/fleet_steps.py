# SPDX-License-Identifier: Apache-2.0
"""What a sweep for a GPU has found so far. An emulated compiler takes more than an hour, and a sweep that was stopped
goes on where it was: build/fleet/NAME.steps has a line for each operator, model's call and part of the other variants
that is done.

The first line is a hash of what decides them all: the program, the driver, the GPU's settings and the models. Steps of
another hash are forgotten.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any


def digest(files: Iterable[Path], *words: str) -> str:
    found = hashlib.sha256(json.dumps(words).encode())
    for path in files:
        found.update(hashlib.sha256(path.read_bytes() if path.exists() else b"").digest())
    return found.hexdigest()


@dataclass
class Steps:
    path: Path
    key: str

    def __post_init__(self) -> None:
        self.found: dict[str, Any] = {}
        text = self.path.read_text() if self.path.exists() else ""
        key, *lines = text[: text.rfind("\n") + 1].splitlines() or [""]  # whole ones, of what was stopped
        if key != self.key:
            lines = []
        self.found.update(map(json.loads, lines))
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text("".join(f"{line}\n" for line in (self.key, *lines)))

    def take(self, step: str, make: Callable[[], Any]) -> Any:
        """What was found of the step; else what `make` finds now."""
        if step not in self.found:
            self.found[step] = make()
            with self.path.open("a") as file:
                file.write(json.dumps([step, self.found[step]]) + "\n")
        return self.found[step]

    def end(self) -> None:
        """The sweep is whole."""
        self.path.unlink(missing_ok=True)
