# SPDX-License-Identifier: Apache-2.0
"""Where the time of a run went: its phases, its slowest tests, and what took the compiler longest."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

SHOWN_TESTS, SHOWN_FILES = 30, 10


@dataclass
class Report:
    """Filled while a run goes on. Tests are (seconds, name)."""

    phases: list[tuple[float, str]] = field(default_factory=list)
    tests: list[tuple[float, str]] = field(default_factory=list)
    compiled: list[tuple[float, str]] = field(default_factory=list)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        begun = time.monotonic()
        try:
            yield
        finally:
            self.phases.append((time.monotonic() - begun, name))

    def add_build(self, preset: str, folder: Path) -> None:
        """What ninja's log says of a build folder: start and end in ms, a time stamp, the file made, a hash."""
        log = folder / ".ninja_log"
        for line in log.read_text().splitlines()[1:] if log.exists() else ():  # the first names the log's version
            start, end, _, made, *_ = line.split("\t")
            if made.endswith(".o"):
                self.compiled.append(((int(end) - int(start)) / 1000, f"{preset}: {made.partition('.dir/')[2]}"))

    def text(self) -> str:
        """Three lists; phases in their order, the others with the slowest first."""
        lines = ["phases:", *(f"{seconds:8.1f} s  {name}" for seconds, name in self.phases)]
        for title, rows, shown in (
            ("tests", self.tests, SHOWN_TESTS),
            ("files to compile", self.compiled, SHOWN_FILES),
        ):
            if rows:
                lines.append(f"the slowest {title} of {len(rows)}:")
                lines += [f"{seconds:8.1f} s  {name}" for seconds, name in sorted(rows, reverse=True)[:shown]]
        return "\n".join(lines)
