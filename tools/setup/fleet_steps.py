# SPDX-License-Identifier: Apache-2.0
"""What a sweep for a GPU has found so far. An emulated compiler takes more than an hour, and a sweep that was stopped
goes on where it was: build/fleet/NAME.steps has a line for each operator, model's call and part of the other variants
that is done.

A step is done again where what it was asked changed, or the SPIR-V of a variant that it made. What other code chooses
for the same shaders is seen by the next whole sweep. All are forgotten where the driver or the GPU's settings changed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Found = tuple[dict[str, str], list[dict[str, Any]]]  # what failed, and the pipelines


def digest(*words: object, files: Iterable[Path] = ()) -> str:
    found = hashlib.sha256(json.dumps(words).encode())
    for path in files:
        found.update(hashlib.sha256(path.read_bytes() if path.exists() else b"").digest())
    return found.hexdigest()


@dataclass
class Steps:
    path: Path
    key: str  # of the driver and the GPU
    spirv: dict[str, str]  # a hash of each variant's

    def __post_init__(self) -> None:
        text = self.path.read_text() if self.path.exists() else ""
        key, *lines = text[: text.rfind("\n") + 1].splitlines() or [""]  # whole ones, of what was stopped
        if key != self.key:
            lines = []
        self.known = {step: rest for step, *rest in map(json.loads, lines)}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text("".join(f"{line}\n" for line in (self.key, *lines)))

    def take(self, step: str, asked: str, make: Callable[[], Found]) -> Found:
        """What was found of the step; else what `make` finds now. `asked`: a hash of what it is of."""
        was, of, found = self.known.get(step, ("", {}, None))
        if found and was == asked and of == self._made(found):
            return found
        found = make()
        with self.path.open("a") as file:
            file.write(json.dumps([step, asked, self._made(found), found]) + "\n")
        return found

    def _made(self, found: Found) -> dict[str, str | None]:
        return {each["shader"]: self.spirv.get(each["shader"]) for each in found[1]}

    def end(self) -> None:
        """The sweep is whole."""
        self.path.unlink(missing_ok=True)
