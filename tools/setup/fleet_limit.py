# SPDX-License-Identifier: Apache-2.0
"""Runs a program that makes pipelines, and ends it where the driver's compiler takes too long for one of them.

The program writes a line to the file that PUMICE_PIPELINE_LOG names when its compiler begins, and another one with the
time when it is done (vulkan/pipeline_log.h).
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

Key = tuple[str, tuple[int, ...], int]  # shader, constants, subgroup size


def key(line: dict) -> Key:
    return line["shader"], tuple(line["spec"]), line["subgroup_size"]


@dataclass
class Watch:
    """Of what is added to a log: the pipelines that are done, and those that were only begun, with the time when that
    was seen."""

    log: Path
    done: set[Key] = field(default_factory=set)
    begun: dict[Key, float] = field(default_factory=dict)
    at: int = 0  # bytes read so far

    def __post_init__(self) -> None:
        self.at = self.log.stat().st_size if self.log.exists() else 0

    def look(self) -> None:
        if not self.log.exists():
            return
        with self.log.open("rb") as file:
            file.seek(self.at)
            text = file.read()
        whole = text[: text.rfind(b"\n") + 1]
        self.at += len(whole)
        for line in map(json.loads, whole.splitlines()):
            if "ms" in line:
                self.done.add(key(line))
                self.begun.pop(key(line), None)
            else:
                self.begun[key(line)] = time.monotonic()

    def late(self, seconds: float) -> Key | None:
        """The pipeline that the compiler has been at for longer."""
        longest = min(self.begun, key=lambda each: self.begun[each], default=None)
        return longest if longest and time.monotonic() - self.begun[longest] > seconds else None


@dataclass
class Ended:
    """How the program ended; `late`: it was ended, as this pipeline took too long."""

    status: int | None  # None: it took too long
    out: str = ""
    err: str = ""
    late: Key | None = None


def run(command: Sequence[str | Path], settings: dict[str, str], watch: Watch, all_s: float, one_s: float) -> Ended:
    """Run it for `all_s` seconds at most, `one_s` for a pipeline."""
    until = time.monotonic() + all_s
    with subprocess.Popen(command, env=settings, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        try:
            while True:
                try:
                    out, err = child.communicate(timeout=0.5)
                    watch.look()
                    return Ended(child.returncode, out, err)
                except subprocess.TimeoutExpired:
                    watch.look()
                late = watch.late(one_s)
                if late or time.monotonic() > until:
                    return Ended(None, late=late)
        finally:
            child.kill()
