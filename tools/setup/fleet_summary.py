# SPDX-License-Identifier: Apache-2.0
"""What docs/fleet.md says of a GPU, by kernel family: test/fleet/NAME.json. A run for some GPUs writes theirs, and the
page keeps what it says of the others."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

from setup.fleet import SLOW_MS, Pipeline, Result
from setup.fleet_gpus import GPUS
from setup.paths import ROOT

FOLDER = ROOT / "test/fleet"


class Counts(NamedTuple):
    """Of pipelines: how many, how many spill and are slow, the slowest and its time, and the time of all."""

    pipelines: int
    spilling: int
    slow: int
    slowest: str
    worst_ms: int
    ms: int

    @classmethod
    def of(cls, pipelines: list[Pipeline]) -> Counts:
        worst = max(pipelines, key=lambda each: each.ms, default=Pipeline("", [], 0, 0))
        spilling, slow = sum(each.spills > 0 for each in pipelines), sum(each.ms > SLOW_MS for each in pipelines)
        return cls(len(pipelines), spilling, slow, worst.shader, round(worst.ms), round(sum(p.ms for p in pipelines)))


class Family(NamedTuple):
    """Of its pipelines the largest number of each, but the fewest waves; how many spill, and the most spills of one."""

    instructions: int
    registers: int
    waves: int
    ms: int
    spilling: int
    spills: int

    @classmethod
    def of(cls, pipelines: list[Pipeline]) -> Family:
        return cls(
            max(each.instructions for each in pipelines),
            max(each.registers for each in pipelines),
            min(each.waves for each in pipelines),
            round(max(each.ms for each in pipelines)),
            sum(each.spills > 0 for each in pipelines),
            max(each.spills for each in pipelines),
        )


def _families(pipelines: list[Pipeline]) -> dict[str, Family]:
    found: dict[str, list[Pipeline]] = {}
    for each in pipelines:
        found.setdefault(each.family, []).append(each)
    return {name: Family.of(of) for name, of in sorted(found.items())}


@dataclass
class Summary:
    gpu: str
    device: str
    commit: str
    variants: int  # also those that are gated
    gated: dict[str, list[str]]  # by what is lacking, "coopmat, int8": variants
    failed: dict[str, str]
    all: Counts
    models: Counts  # of those that models make
    picked: Counts  # of those that selection chooses for the operators' cases
    families: dict[str, Family]
    of_models: dict[str, Family]
    of_picked: dict[str, Family]

    @classmethod
    def of(cls, result: Result) -> Summary:
        gated: dict[str, list[str]] = {}
        for variant, lacking in result.gated.items():
            gated.setdefault(", ".join(lacking), []).append(variant)
        made = result.pipelines
        of_models, picked = [each for each in made if each.models], [each for each in made if each.picked]
        head = (result.gpu, result.device, result.commit, result.variants, dict(sorted(gated.items())), result.failed)
        return cls(*head, *map(Counts.of, (made, of_models, picked)), *map(_families, (made, of_models, picked)))

    @property
    def title(self) -> str:
        return next(gpu.title for gpu in GPUS if gpu.name == self.gpu)

    @classmethod
    def read(cls, path: Path) -> Summary:
        given = json.loads(path.read_text())
        counts = {key: Counts(*given[key]) for key in ("all", "models", "picked")}
        families = {
            key: {name: Family(*of) for name, of in given[key].items()}
            for key in ("families", "of_models", "of_picked")
        }
        return cls(**given | counts | families)

    def write(self, folder: Path = FOLDER) -> None:
        """A line for each family and each thing that failed."""
        lines = []
        for key, value in asdict(self).items():
            inside = json.dumps(value)
            if isinstance(value, dict) and value:
                rows = [f"  {json.dumps(name)}: {json.dumps(of)}" for name, of in value.items()]
                inside = "{\n" + ",\n".join(rows) + "\n }"
            lines.append(f" {json.dumps(key)}: {inside}")
        (folder / f"{self.gpu}.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


def kept(folder: Path = FOLDER) -> list[Summary]:
    """Those that there are, in the order of the page."""
    paths = (folder / f"{gpu.name}.json" for gpu in GPUS)
    return [Summary.read(path) for path in paths if path.exists()]
