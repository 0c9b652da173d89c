# SPDX-License-Identifier: Apache-2.0
"""`./dev fuzz --coverage`: which lines of the operators and of the file format the fuzz targets reach."""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from setup.building import COVERAGE, build, llvm_tool
from setup.paths import ROOT, environment
from setup.progress import StepFailed
from setup.testing import Totals, devices, fuzz_target, programs, seeds

LEAST = 85.0  # percent of each folder's lines
FOLDERS = ("ops", "serialization")
# What the kernel tool and tests use, and no file that is loaded reaches: the fp64 references on the host, with which
# `kernel test` compares, and the writer of the files that it makes.
LEFT_OUT = ("ops/reference/", "ops/shared/host_call.", "serialization/write.")
WORST = 15  # files in the table
SHARES = {"fuzz_execute": 0.6, "fuzz_load": 0.4}  # the targets that read programs, and their parts of the time


@dataclass(frozen=True)
class Lines:
    """How many lines of code a file or a folder has, and how many of them ran."""

    name: str
    count: int
    covered: int

    @property
    def percent(self) -> float:
        return 100.0 * self.covered / self.count if self.count else 0.0

    def row(self) -> str:
        return f"{self.name:40} {self.covered:6} of {self.count:6} lines  {self.percent:5.1f} %"


def measure(totals: Totals, seconds: int) -> None:
    """Run the targets from the seeds, print the tables and count one test for each folder: at least LEAST percent."""
    folder = build(COVERAGE, ["fuzz"])
    work = folder / "reached"  # not the corpus of ./dev fuzz: the figures depend on the seeds and this run only
    shutil.rmtree(work, ignore_errors=True)
    targets = [target for target in programs(folder, "fuzz_*") if target.name in SHARES]
    for target in targets:
        profile = str(work / f"{target.name}-%p.profraw")
        share = max(1, int(seconds * SHARES[target.name]) // len(devices(target)))
        for features in devices(target):
            totals.add(
                fuzz_target(target, share, work / target.name, features, seeds(target), LLVM_PROFILE_FILE=profile)
            )
    files = reached(targets, work)
    for name in FOLDERS:
        mine = [each for each in files if each.name.startswith(name + "/")]
        whole = Lines(name + "/", sum(each.count for each in mine), sum(each.covered for each in mine))
        print(f"== {name}/: the least covered files", flush=True)
        for each in sorted(mine, key=lambda file: file.covered - file.count)[:WORST]:
            print(each.row(), flush=True)
        enough = whole.percent >= LEAST
        print(f"{whole.row()}{'' if enough else f': fewer than {LEAST:g} %'}", flush=True)
        totals.add(enough)


def reached(targets: list[Path], work: Path) -> list[Lines]:
    """The lines of every counted file. Raises StepFailed where a target left no profile or a tool fails."""
    merged = work / "all.profdata"
    _tool("llvm-profdata", "merge", "-sparse", "-o", merged, *sorted(work.glob("*.profraw")))
    objects = [word for target in targets[1:] for word in ("-object", target)]
    text = _tool("llvm-cov", "export", "-summary-only", f"-instr-profile={merged}", targets[0], *objects)
    files = []
    for row in json.loads(text)["data"][0]["files"]:
        path = Path(row["filename"]).resolve()
        name = str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else ""
        if name.startswith(tuple(f"{folder}/" for folder in FOLDERS)) and not name.startswith(LEFT_OUT):
            files.append(Lines(name, row["summary"]["lines"]["count"], row["summary"]["lines"]["covered"]))
    return files


def _tool(name: str, *words: object) -> str:
    command = [str(word) for word in (llvm_tool(name), *words)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment(), check=False)
    if done.returncode:
        raise StepFailed(f"{name}: {done.stderr.strip()}")
    return done.stdout
