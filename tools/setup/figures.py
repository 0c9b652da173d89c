# SPDX-License-Identifier: Apache-2.0
"""`./dev bench-gpu`: measures every figure of docs/performance.md by its recipe in test/bench/figures.toml.

Rounds take turns: each measures every figure once, so that a clock or a neighbour that changes is seen as spread. What
was measured is kept as JSON beside docs/gpu's pages; docs/performance.md is made of these files and of nothing else.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import statistics
import subprocess
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from setup import gpu, work
from setup.paths import BUILD, ROOT, environment, launcher
from setup.progress import Progress, StepFailed

RECIPES = ROOT / "test/bench/figures.toml"
TEMPLATE = ROOT / "test/bench/performance.md"  # the words around the tables
PAGE = ROOT / "docs/performance.md"
FILES = BUILD / "figures"
MARK = "<!-- the tables -->"
RATES = ("gb_s", "tflop_s", "of_roof", "a_second")  # facts that go by the time of a run


@dataclass
class Figure:
    """A row of a table: values of each round, in `unit`, and of its peer; what stays the same in all rounds."""

    table: str
    what: str
    unit: str
    values: list[float] = field(default_factory=list)
    facts: dict = field(default_factory=dict)  # kernel, TFLOP/s and the like, of the first round
    peer: str = ""
    peer_values: list[float] = field(default_factory=list)

    def add(self, value: float) -> None:
        self.values.append(value)

    def kept(self) -> dict:
        row = {"table": self.table, "what": self.what, "unit": self.unit, **_spread(self.values)}
        to_median = self.values[0] / row["median"]
        row |= {key: value * to_median if key in RATES and value else value for key, value in self.facts.items()}
        return row | ({"peer": {"title": self.peer, **_spread(self.peer_values)}} if self.peer_values else {})


def _spread(values: list[float]) -> dict:
    return {"median": statistics.median(values), "low": min(values), "high": max(values), "rounds": len(values)}


@dataclass
class Measuring:
    """`tool`: pumice-rt; `python`: what makes files; `files`: where they are, or will be; `peers`: folders with peers'
    programs, by their names in recipes."""

    tool: Path
    python: Path
    files: Path
    peers: dict[str, Path]
    only: str = ""
    seconds: float = 0.2
    recipes: dict = field(default_factory=lambda: tomllib.loads(RECIPES.read_text()))
    figures: dict[tuple[str, str], Figure] = field(default_factory=dict)
    device: dict = field(default_factory=dict)
    ceilings: dict[str, list[float]] = field(default_factory=dict)
    rates: dict[str, list[float]] = field(default_factory=dict)  # of each arithmetic, by these

    def round(self, progress: Progress) -> None:
        for table in self.tables():
            title = table["title"]
            with progress.step(title):
                if "row" in table:
                    for row in table["row"]:
                        self._row(title, row)
                else:
                    self._kernels(title, table)

    def tables(self) -> list[dict]:
        """Those for the device, of which `only` finds the title."""
        on = "cpu" if self.kind() == "cpu" else "gpu"
        return [
            table
            for table in self.recipes["table"]
            if table.get("on", "gpu") == on and re.search(self.only, table["title"])
        ]

    def kind(self) -> str:
        if not self.device:
            self.device = json.loads(self._tool("kernel", "list", "--op", "softmax", "--json"))["device"]
        return self.device["kind"]

    def _kernels(self, title: str, table: dict) -> None:
        """All cases of a table in one process, which measures the device's ceilings first."""
        words = [f"--op={op}" for op in table.get("ops", [])]
        for case in table.get("cases", []):
            words += ["--case", case if case.startswith("op=") else f"op={table['op']},{case}"]
        said = json.loads(self._tool("kernel", "bench", *words, "--kernel=pick", f"--seconds={self.seconds}", "--json"))
        self._keep_ceilings(said)
        for row in said["rows"]:
            if row["status"] != "ok":
                if row["status"] == "failed":
                    raise StepFailed(f"{row['title']}: {row['why']}")
                continue
            figure = self._figure(title, row["title"], "us")
            figure.add(row["cpu_us" if self.kind() == "cpu" else "median_us"])
            facts = {key: row[key] for key in ("gb_s", "tflop_s", "of_roof") if key in row}
            figure.facts = figure.facts or {"kernel": row["is"], **facts}

    def _row(self, title: str, row: dict) -> None:
        file = self.files / row["file"]
        if "bench" in row:
            said = json.loads(self._tool("bench", str(file), *shlex.split(row["bench"]), "-r", "200", "--json"))
            figure = self._figure(title, row["what"], "ms")
            figure.add(said["median_ms"])
            if not figure.facts:
                figure.facts = {"work": self._work_of_a_call(file, row)}
                figure.facts |= {"a_second": 1e3 * row["items"] / said["median_ms"]} if "items" in row else {}
        else:
            figure = self._figure(title, row["what"], "tokens/s")
            words = ["generate", str(file), *shlex.split(row["generate"]), "--json"]
            if not figure.values:  # the first run compiles the pipelines, which later ones find in the cache
                figure.facts = {"work": self._work_of_a_token(file, words, row["figure"])}
            said = json.loads(self._tool(*words))
            figure.add(said["tokens_per_second" if row["figure"] == "write" else "prompt_tokens_per_second"])
        if "peer" in row and self.peers:
            self._peer(figure, self.recipes["peers"][row["peer"]])

    def _work_of_a_call(self, file: Path, row: dict) -> dict:
        words = ["profile", str(file), *shlex.split(row["bench"]), "-r", "1", "--json"]
        return work.work(json.loads(self._tool(*words))["rows"])

    def _work_of_a_token(self, file: Path, words: list[str], figure: str) -> dict:
        """Of one that is generated half way through the text, which stands for all; or of those of the prompt."""
        said = json.loads(self._tool(*words, "--profile"))
        if figure == "read":
            return work.work(said["prompt_rows"]) | {"items": said["prompt"]}
        program = json.loads(self._tool("inspect", str(file), "--json"))
        return work.work_of_a_token(said["rows"], program, said["prompt"] + len(said["tokens"]) // 2)

    def _peer(self, figure: Figure, peer: dict) -> None:
        places = self.peers | {name: self.files / name for name in self.recipes["files"]}
        done = _call(shlex.split(peer["command"].format(**places)))
        found = re.search(peer["figure"], done)
        if not found:
            raise StepFailed(f"{peer['command']}: no figure in what it says:\n{done[-2000:]}")
        figure.peer = peer["title"]
        figure.peer_values.append(float(found[1]))

    def _figure(self, table: str, what: str, unit: str) -> Figure:
        return self.figures.setdefault((table, what), Figure(table, what, unit))

    def make_files(self, progress: Progress) -> None:
        """Those that the tables name, and for their peers."""
        rows = [row for table in self.tables() for row in table.get("row", [])]
        names = [row["file"] for row in rows]
        if self.peers:
            commands = [self.recipes["peers"][row["peer"]]["command"] for row in rows if "peer" in row]
            names += [name for name in self.recipes["files"] if any(f"{{{name}}}" in each for each in commands)]
        self.files.mkdir(parents=True, exist_ok=True)
        for name in dict.fromkeys(names):
            if not (self.files / name).exists():
                fresh = self.files / f"{name}.fresh"
                with progress.step(name):
                    _call([str(self.python), *self.recipes["files"][name].format(out=fresh).split()])
                fresh.rename(self.files / name)

    def _tool(self, *words: str) -> str:
        return _call([*map(str, launcher()), str(self.tool), *words])

    def measure_ceilings(self) -> None:
        """Where no table of kernels has done so."""
        if not self.ceilings:
            words = ("--op=relu", "--case=x=T[64]", f"--seconds={self.seconds}", "--json")
            said = json.loads(self._tool("kernel", "bench", *words))
            self._keep_ceilings(said)

    def _keep_ceilings(self, said: dict) -> None:
        for name, kept in (("ceilings", self.ceilings), ("rates", self.rates)):
            for each in said[name]:
                kept.setdefault(each["name"], []).append(each["per_second"])

    def kept(self) -> dict:
        """What the JSON file has."""
        self.measure_ceilings()
        return {
            "schema": 1,
            "device": {key: self.device[key] for key in ("name", "driver")}
            | ({"cores": len(os.sched_getaffinity(0))} if self.kind() == "cpu" else {}),
            "date": f"{datetime.now(UTC):%Y-%m-%d}",
            "commit": gpu.commit(),
            "ceilings": {name: statistics.median(values) for name, values in self.ceilings.items()},
            "rates": {name: statistics.median(values) for name, values in self.rates.items()},
            "figures": [figure.kept() for figure in self.figures.values() if figure.values],
        }


def _call(command: list[str]) -> str:
    done = subprocess.run(command, cwd=ROOT, env=environment(), capture_output=True, text=True, check=False)
    if done.returncode:
        raise StepFailed(f"{' '.join(command)}: status {done.returncode}\n{(done.stderr or done.stdout)[-2000:]}")
    return done.stdout


# -- the page ----------------------------------------------------------------------------------------------------------


def page(files: list[dict]) -> str:
    """docs/performance.md: the template, with a section for each file of figures."""
    return TEMPLATE.read_text().replace(MARK, "\n".join("\n".join(_section(each)) for each in files))


def stored() -> list[dict]:
    return [json.loads(path.read_text()) for path in sorted(gpu.FOLDER.glob("*.figures.json"))]


def _section(kept: dict) -> Iterator[str]:
    device = kept["device"]
    yield f"## {device['name']}, driver {device['driver']}\n"
    rounds = max(row["rounds"] for row in kept["figures"])
    ceilings = ", ".join(f"{name} {_rate(name, value)}" for name, value in kept["ceilings"].items() if value)
    of = "one round" if rounds == 1 else f"the median of {rounds} rounds, and in parentheses the least and the most"
    yield (f"{kept['date']}, commit {kept['commit']}, `./dev bench-gpu`: {of}.\nMeasured ceilings: {ceilings}.\n")
    for table in dict.fromkeys(row["table"] for row in kept["figures"]):
        rows = [row for row in kept["figures"] if row["table"] == table]
        yield f"### {table}\n"
        yield from _kernel_table(rows) if "kernel" in rows[0] else _row_table(rows, kept)
        yield ""


def _kernel_table(rows: list[dict]) -> Iterator[str]:
    yield "| case | us | GB/s | TFLOP/s | % of roof | kernel |"
    yield "|---|---|---|---|---|---|"
    for row in rows:
        roof = f"{100 * row['of_roof']:.0f}" if row.get("of_roof") else ""
        cells = (_number(row.get("gb_s")), _number(row.get("tflop_s")), roof, row["kernel"])
        yield f"| {row['what']} | {_range(row)} | {' | '.join(cells)} |"


def _row_table(rows: list[dict], kept: dict) -> Iterator[str]:
    yield "| what | Pumice | a second | ceiling | % of it | other |"
    yield "|---|---|---|---|---|---|"
    for row in rows:
        unit = " ms" if row["unit"] == "ms" else ""
        peer = row.get("peer")
        other = f"{peer['title']}: {_range(peer)}{unit}" if peer else ""
        most, share = ceiling(row, kept)
        cells = [f"{_range(row)}{unit}", _number(row.get("a_second")), most and f"{_number(most)}{unit}", share, other]
        yield f"| {row['what']} | {' | '.join(cells)} |"


def ceiling(row: dict, kept: dict) -> tuple[float | str, str]:
    """What the ceilings of the device allow, in the unit of the row, and how many percent of it were reached."""
    if "work" not in row:
        return "", ""
    seconds = work.least_seconds(row["work"], kept["ceilings"]["read"], kept["rates"])
    seconds /= kept["device"].get("cores", 1)  # ceilings are of one core
    most = 1e3 * seconds if row["unit"] == "ms" else row["work"].get("items", 1) / seconds
    share = most / row["median"] if row["unit"] == "ms" else row["median"] / most
    return most, f"{100 * share:.0f}"


def _range(row: dict) -> str:
    """0.58 (0.57 to 0.6)"""
    low, high = _number(row["low"]), _number(row["high"])
    return _number(row["median"]) + (f" ({low} to {high})" if low != high else "")


def _number(value: float | None) -> str:
    if not value:
        return ""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def _rate(name: str, value: float) -> str:
    unit = "B" if name in ("read", "copy") else "OP" if name in ("dot", "s8 matrix") else "FLOP"
    scale, letter = (1e12, "T") if value >= 1e11 else (1e9, "G")
    return f"{value / scale:.3g} {letter}{unit}/s"


def moved(before: dict, after: dict) -> list[str]:
    """A line for each figure that differs by more than both spreads, and for each that only one of the two has."""
    old = {(row["table"], row["what"]): row for row in before["figures"]}
    lines = []
    for row in after["figures"]:
        was = old.pop((row["table"], row["what"]), None)
        if was is None:
            lines.append(f"new      {row['table']}: {row['what']}: {_range(row)} {row['unit']}")
            continue
        spread = max(row["high"] - row["low"], was["high"] - was["low"])
        if abs(row["median"] - was["median"]) > spread:
            change = 100 * (row["median"] / was["median"] - 1)
            better = (change < 0) == (row["unit"] in ("us", "ms"))
            word = "better  " if better else "worse   "
            lines.append(
                f"{word} {row['table']}: {row['what']}: {_range(was)} -> {_range(row)} {row['unit']}, {change:+.1f} %"
            )
    return lines + [f"gone     {table}: {what}" for table, what in old]


def run(measuring: Measuring, rounds: int, against: Path | None, out: Path | None, make_only: bool) -> int:
    """Measure, say what moved, write the JSON (`out`, else beside the pages of docs/gpu) and the page."""
    before = json.loads(against.read_text()) if against else None  # first: a wrong path costs no measurement
    progress = Progress("bench-gpu")
    try:
        measuring.make_files(progress)
        for _ in range(0 if make_only else rounds):
            measuring.round(progress)
    finally:
        progress.close()
    if make_only:
        return 0
    kept = measuring.kept()
    text = json.dumps(kept, indent=1) + "\n"
    if out or measuring.only:
        (out or FILES / "figures.json").write_text(text)
    else:
        path = gpu.path_of(kept["device"], ".figures.json")
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        PAGE.write_text(page(stored()))
    print("\n".join(_section(kept)))
    if before:
        print(*(moved(before, kept) or ["nothing moved beyond the spread"]), sep="\n")
    return 0
