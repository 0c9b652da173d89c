# SPDX-License-Identifier: Apache-2.0
"""`./dev test-gpu`: what proves that a GPU and its driver compute right, in minutes; docs/gpu/DEVICE-DRIVER.md keeps
the counts.

Two parts: `pumice-rt kernel test --full` of every operator, each case of a kernel compared with fp64 and replayed a
hundred times bit for bit; then the tests in Python that compare operators and models with eager PyTorch. Operators with
many kernels have some 30 000 pairs of a kernel and a case, most of whose time is the driver's compiler: of these one of
32 is run, drawn by a seed, so that another seed runs others; --one-of 1 runs all. At last, small cases run the shader
variants that neither part made.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from setup import variants
from setup.paths import BUILD, LOGS, ROOT, environment, launcher
from setup.progress import Progress, StepFailed, reap, side_by_side, spawn
from setup.testing import Totals

FOLDER = ROOT / "docs/gpu"
PYTHON_TESTS = ("test/ops", "test/fusion", "test/models", "test/llm/test_decoder_steps.py")
TESTS_LOG = LOGS / "test-gpu.log"
LAST_OF_LOG = 4000  # characters
MOST_PROCESSES = 8  # drivers let processes take turns: on an H100 417 s with 16, on an H200 404 s with 8
COLUMNS = "| operator | rows run | failed | skipped | largest error of what is allowed |"


@dataclass
class Operator:
    """What became of the rows of an operator's test."""

    counts: Counter[str] = field(default_factory=Counter)
    worst: float = 0.0
    replays: int = 0
    seconds: float = 0.0
    why: list[str] = field(default_factory=list)  # of what failed

    def add(self, row: dict) -> None:
        self.counts[row["status"]] += 1
        self.worst = max(self.worst, row.get("worst", 0.0))
        self.replays += row.get("replays", 0)
        if row["status"] == "failed":
            self.why.append(f"{row['kernel']} {row['title']}: {row['why']}\n  again: {row['repro']}")


@dataclass
class Proof:
    """All of one run: `tool` is pumice-rt's path, `python` the interpreter of the second part."""

    tool: Path
    python: Path
    jobs: int
    one_of: int = 1
    seed: int = 1
    only: list[str] = field(default_factory=list)
    device: dict = field(default_factory=dict)
    shaders: list = field(default_factory=list)  # of `kernel list`
    operators: dict[str, Operator] = field(default_factory=dict)
    log: Path = BUILD / "gpu-shaders.log"  # a line for each shader variant that any of both parts made
    tests: Totals | None = None
    seconds: dict[str, float] = field(default_factory=dict)

    def kernels(self, progress: Progress) -> None:
        listed = self._listed()
        rows = [row for row in listed["operators"] if not self.only or row["op"] in self.only]
        if unknown := sorted(set(self.only) - {row["op"] for row in rows}):
            raise StepFailed(f"there is no operator {unknown[0]}; pumice-rt kernel list names them")
        # One process at a time, whose threads share the device: a process for each would open it again.
        calls = [row["op"] for row in rows if len(row["kernels"]) == 1]
        groups = [(f"{len(calls)} operators of one kernel", calls)] if calls else []
        groups += [(row["op"], [row["op"]]) for row in rows if len(row["kernels"]) > 1]
        begun = time.monotonic()
        for title, ops in groups:
            with progress.step(title, self._line):
                self._test(ops)
        self.seconds["kernels"] = time.monotonic() - begun

    def eager(self, progress: Progress) -> None:
        """Operators and models against eager PyTorch; what pytest says goes to a log."""
        begun, totals = time.monotonic(), Totals()
        with tempfile.NamedTemporaryFile(suffix=".xml") as report, TESTS_LOG.open("w") as log:
            command = [*launcher(), self.python, "-m", "pytest", "-q", f"--junitxml={report.name}", *PYTHON_TESTS]
            command += ["-n", str(min(self.jobs, MOST_PROCESSES)), "--dist", "worksteal", "-p", "no:cacheprovider"]
            # By name: without one the tests take a CPU driver.
            device = self._listed()["device"]["name"]
            variables = environment(OMP_NUM_THREADS="1", PUMICE_DEVICE=device, PUMICE_SHADER_LOG=str(self.log))
            with progress.step("against eager PyTorch", lambda: f"see {TESTS_LOG.relative_to(ROOT)}"):
                status = reap(spawn(command, cwd=ROOT, env=variables, stdout=log, stderr=subprocess.STDOUT))
            totals.add_junit(Path(report.name), status)
        self.tests = totals
        self.seconds["eager"] = time.monotonic() - begun

    def rest(self, progress: Progress) -> None:
        """Small cases of the shader variants that the draw and the other tests left out."""
        begun = time.monotonic()
        with progress.step("the other shader variants", self._line):
            self._add(variants.run_rest(self.shaders, self.log, self._call, f"--jobs={min(self.jobs, 64)}"))
        self.seconds["variants"] = time.monotonic() - begun

    def _listed(self) -> dict:
        listed = json.loads(self._call("list", "--json"))
        self.device, self.shaders = listed["device"], listed["shaders"]
        return listed

    def variants(self) -> tuple[list[str], int]:
        """The shader variants that neither part made, and how many there are."""
        return variants.missed(self.shaders, variants.made_by(self.log)), len(variants.missed(self.shaders, set()))

    def say(self) -> None:
        """What took how long, slowest first, with the first failures of each; what pytest said last."""
        for op, each in sorted(self.operators.items(), key=lambda item: -item[1].seconds):
            counts = ", ".join(f"{count} {status}" for status, count in each.counts.items())
            print(f"{op:<28} {each.seconds:7.1f} s  {counts}", *each.why[:5], sep="\n  ", flush=True)
        if self.tests:
            print(TESTS_LOG.read_text()[-LAST_OF_LOG:], flush=True)
        if self.operators and not self.only:
            unseen, of = self.variants()
            print(f"{len(unseen)} of {of} shader variants did not run", flush=True)

    def failed(self) -> int:
        return sum(each.counts["failed"] for each in self.operators.values()) + (self.tests.failed if self.tests else 0)

    def passed(self) -> int:
        return sum(each.counts["ok"] for each in self.operators.values()) + (self.tests.passed if self.tests else 0)

    def _line(self) -> str:
        counts = sum((each.counts for each in list(self.operators.values())), Counter())
        return f"{counts['ok']} passed, {counts['failed']} failed, {counts['skipped']} skipped"

    def _test(self, ops: list[str]) -> None:
        words = [f"--op={op}" for op in ops]
        draw = [f"--one-of={self.one_of}", f"--seed={self.seed}"] if len(ops) == 1 else []
        begun = time.monotonic()
        text = self._call("test", *words, "--full", *draw, f"--jobs={min(self.jobs, 64)}", "--json")
        seconds = (time.monotonic() - begun) / len(ops)
        self._add(json.loads(text)["rows"])
        for op in ops:
            self.operators.setdefault(op, Operator()).seconds = seconds

    def _add(self, rows: list[dict]) -> None:
        for row in rows:
            name = row["case"].removeprefix("op=").split(",")[0].split(" ")[0]
            self.operators.setdefault(name, Operator()).add(row)

    def _call(self, *words: str) -> str:
        command = [*map(str, launcher()), str(self.tool), "kernel", *words]
        variables = environment(PUMICE_SHADER_LOG=str(self.log))
        child = spawn(command, cwd=ROOT, env=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        said, errors = child.communicate()
        status = reap(child)
        if status not in (0, 1, 4):  # 1: something failed, which its rows say; 4: no kernel runs here
            raise StepFailed(f"{' '.join(command)}: status {status}\n{errors[-2000:]}")
        return said

    def page(self) -> str:
        """The page of docs/gpu."""
        counts = sum((each.counts for each in self.operators.values()), Counter())
        replays = sum(each.replays for each in self.operators.values())
        at_once = {"kernels", "eager"} <= self.seconds.keys()
        seconds = ", ".join(f"{part} {each:.0f} s" for part, each in self.seconds.items())
        seconds += "; kernels and eager at once" if at_once else ""
        lines = [
            f"# {self.device['name']}, driver {self.device['driver']}",
            "",
            f"Written by `./dev test-gpu` on {datetime.now(UTC):%Y-%m-%d}, commit {commit()}, {self.jobs} threads: "
            f"{seconds}. How it is done, and what it does not show: [testing.md](../testing.md).",
            "",
            "| | passed | failed | skipped |",
            "|---|---|---|---|",
            f"| kernels against fp64 (`pumice-rt kernel test --full`, of operators with many kernels `--one-of "
            f"{self.one_of} --seed {self.seed}`; with `--variant` for what nothing made), {replays:,} replays bit for "
            f"bit | {counts['ok']:,} | {counts['failed']:,} | {counts['skipped']:,} |",
        ]
        if self.tests:
            options = os.environ.get("PYTEST_ADDOPTS", "").split()
            lines.append(
                f"| operators and models against eager PyTorch (`pytest {' '.join([*options, *PYTHON_TESTS])}`) "
                f"| {self.tests.passed:,} | {self.tests.failed:,} | {self.tests.skipped:,} |"
            )
        lines += ["", "Skipped are kernels that the device lacks features for, or that a case does not fit.", ""]
        unseen, of = self.variants()
        lines += [f"Shader variants that ran: {of - len(unseen)} of {of}"]
        lines[-1] += f"; not: {', '.join(unseen)}." if unseen else "."
        lines += ["", COLUMNS, "|---|---|---|---|---|"]
        for op, each in sorted(self.operators.items()):
            worst = f"{each.worst:.2f}" if each.worst else ""
            lines.append(
                f"| {op} | {each.counts['ok']:,} | {each.counts['failed']:,} | {each.counts['skipped']:,} | {worst} |"
            )
        failed = [line for op in sorted(self.operators) for line in self.operators[op].why]
        if failed:
            lines += ["", "```text", *failed[:100], "```"]
        return "\n".join(lines) + "\n"


def path_of(device: dict, end: str) -> Path:
    """Where what was seen on a device is kept: docs/gpu/NAME-DRIVER."""
    words = re.sub(r"[^A-Za-z0-9.]+", "-", f"{device['name']}-{device['driver']}").strip("-")
    return FOLDER / (words + end)


def commit() -> str:
    command = ["git", "describe", "--always", "--dirty", "--exclude=*"]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    except FileNotFoundError:  # a GPU's machine may have no git, and is asked when all is measured
        return "unknown"
    return done.stdout.strip() or "unknown"


def run(proof: Proof, parts: list[str]) -> int:
    """Run `parts` (kernels, eager), print what failed, and write the page if everything ran."""
    for folder in (proof.log.parent, LOGS):
        folder.mkdir(exist_ok=True, parents=True)
    proof.log.unlink(missing_ok=True)
    works = {"kernels": proof.kernels, "eager": proof.eager}
    progress = Progress("test-gpu")
    try:  # at once: the host's processors have most to do
        side_by_side(*(partial(works[part], progress) for part in parts))
        if proof.operators and not proof.only:
            proof.rest(progress)
    except KeyboardInterrupt:
        proof.say()
        raise
    finally:
        progress.close()
    proof.say()
    if proof.operators and not proof.only:
        path = path_of(proof.device, ".md")
        path.parent.mkdir(exist_ok=True)
        path.write_text(proof.page())
        print(f"written: {path.relative_to(ROOT)}")
    print(f"{proof.passed()} passed, {proof.failed()} failed", flush=True)
    return 1 if proof.failed() or not proof.passed() else 0
