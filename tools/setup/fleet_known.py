# SPDX-License-Identifier: Apache-2.0
"""test/fleet/known.txt: the pipelines that `./dev fleet` has compiled, so that `./dev fleet --changed` compiles only
those of which the SPIR-V or the drivers changed.

What decides a pipeline is its SPIR-V, its constants, the subgroup size and the driver. The file has a hash of each
variant's SPIR-V, the drivers as third-party/debian.lock has them, and a line for each pipeline with a letter for each
GPU. Constants are those that selection chose when the whole fleet was last run.
"""

from __future__ import annotations

import json
import os
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from setup import install
from setup.building import build
from setup.debian_lock import DebianLock
from setup.fleet import Compiler, Pipeline, Result, matrices, tools, unmade
from setup.fleet_gpus import SETS, Gpu, chosen, sets
from setup.paths import ROOT
from setup.prefix import labels
from setup.progress import Progress, side_by_side
from setup.recipes import RECIPES

FILE = ROOT / "test/fleet/known.txt"
CHECKED = ("navi31", "adreno740", "tgl", "m1", "ampere")  # one a vendor
SLOWEST = "nouveau"  # shim of the compiler that takes longest
SLOW_MS = 2000  # twice what docs/fleet.md calls slow, as processors differ
FINE, SPILLS, SLOW, FAILED, NOT_MADE = "ostx."
MEANS = {SPILLS: "spills", SLOW: f"takes more than {SLOW_MS} ms", FAILED: "does not compile"}
HEAD = f"""\
# SPDX-License-Identifier: Apache-2.0
# Written by `./dev fleet`: see tools/setup/fleet_known.py. A variant with a hash of its SPIR-V, then its pipelines:
# constants, subgroup size (0: the driver's choice), and for each GPU {FINE}: compiled, {SPILLS}: spills, {SLOW}: slow
# to compile, {FAILED}: failed, {NOT_MADE}: not made there.
"""

Key = tuple[tuple[int, ...], int]  # constants, subgroup size
T = TypeVar("T")


def drivers() -> str:
    parts = [label for name in SETS for label in labels(name)]
    return DebianLock().digest(parts, RECIPES["gpus"].arch)[:16]


def digests(generated: Path) -> dict[str, str]:
    """A hash of the SPIR-V of every variant, as the build has written them."""
    found: dict[str, str] = {}
    for shader in sorted((ROOT / "glsl").glob("*.glsl")):
        found |= json.loads((generated / f"{shader.stem}.json").read_text())
    return found


def letter(pipeline: Pipeline, failed: set[str]) -> str:
    if pipeline.name in failed:
        return FAILED
    return SPILLS if pipeline.spills else SLOW if pipeline.ms > SLOW_MS else FINE


@dataclass
class Known:
    drivers: str = ""
    gpus: tuple[str, ...] = CHECKED
    spirv: dict[str, str] = field(default_factory=dict)
    letters: dict[str, dict[Key, dict[str, str]]] = field(default_factory=dict)  # by variant

    @classmethod
    def read(cls, path: Path = FILE) -> Known:
        known, variant = cls(), ""
        for line in path.read_text().splitlines() if path.exists() else []:
            match line.partition("#")[0].split():
                case ["drivers", digest, *gpus]:
                    known.drivers, known.gpus = digest, tuple(gpus)
                case ["shader", name, digest]:
                    variant = name
                    known.spirv[name], known.letters[name] = digest, {}
                case [constants, subgroup, letters]:
                    spec = tuple(map(int, constants.split(","))) if constants != "-" else ()
                    found = dict(zip(known.gpus, letters, strict=True))
                    known.letters[variant][spec, int(subgroup)] = {
                        gpu: each for gpu, each in found.items() if each != NOT_MADE
                    }
        return known

    def write(self, path: Path = FILE) -> None:
        lines = [f"drivers {self.drivers} {' '.join(self.gpus)}"]
        for name in sorted(self.spirv):
            lines.append(f"shader {name} {self.spirv[name]}")
            for (spec, subgroup), of in sorted(self.letters.get(name, {}).items()):
                letters = "".join(of.get(gpu, NOT_MADE) for gpu in self.gpus)
                lines.append(f" {','.join(map(str, spec)) or '-'} {subgroup} {letters}")
        path.parent.mkdir(exist_ok=True)
        path.write_text(HEAD + "\n".join(lines) + "\n")

    def stale(self, now: dict[str, str]) -> list[str]:
        """The variants that must be compiled again."""
        return [name for name, digest in now.items() if self.drivers != drivers() or self.spirv.get(name) != digest]

    def take(self, now: dict[str, str]) -> bool:
        """Goes over to these variants. Whether they are known as they are, and others that were known are gone."""
        only_fewer = not self.stale(now) and self.spirv.keys() > now.keys()
        self.spirv, self.letters = now, {name: self.letters.get(name, {}) for name in now}
        return only_fewer

    def pipelines(self, gpu: str, variants: list[str], of_matrices: set[str]) -> list[Pipeline]:
        """Those that were made there, and one of a variant without any."""
        made = [
            Pipeline(name, list(spec), subgroup, 0)
            for name, keys in self.letters.items()
            for (spec, subgroup), of in keys.items()
            if gpu in of
        ]
        wanted, names = set(variants), {each.shader for each in made}
        rest = unmade([name for name in variants if name not in names], made, of_matrices)
        return [each for each in made if each.shader in wanted] + rest

    def put(self, gpu: str, pipelines: list[Pipeline], failed: set[str]) -> list[str]:
        """Notes what became of these; returns a sentence for each that is worse than it was."""
        worse = []
        for each in pipelines:
            of = self.letters.setdefault(each.shader, {}).setdefault((tuple(each.spec), each.subgroup_size), {})
            was, of[gpu] = of.get(gpu, FINE), letter(each, failed)
            if of[gpu] not in (FINE, was):
                worse.append(f"{gpu}: {each.name} {MEANS[of[gpu]]}; {each.ms:.0f} ms, {each.spills} spills")
        return worse

    @classmethod
    def of(cls, results: list[Result], now: dict[str, str]) -> Known:
        """Of whole runs. A variant of which one was older than the others is left to be compiled again."""
        known = cls(drivers())
        for result in results:
            known.put(result.gpu, result.pipelines, set(result.failed))
        known.spirv = {
            name: digest for name, digest in now.items() if all(result.spirv.get(name) == digest for result in results)
        }
        return known


def compiled(known: Known, compiler: Compiler, stale: list[str], progress: Progress) -> tuple[list[Pipeline], set[str]]:
    """The pipelines of these variants, and the names of those that failed."""
    name, failed = compiler.gpu.name, {}
    wanted = known.pipelines(name, stale, matrices(compiler.device()[1]))
    progress.say(f"{name}: {len(wanted)} pipelines")
    with progress.step(name):
        compiler.listed(wanted, failed)
        made = compiler.made() + [each for each in wanted if each.name in failed]
    return made, set(failed)


def at_once(gpus: list[Gpu], compile_for: Callable[[Gpu], T]) -> dict[str, T]:
    """What it gives of each GPU, one on each core, that of the slowest compiler first."""
    waiting = deque(sorted(gpus, key=lambda gpu: gpu.shim != SLOWEST))
    found: dict[str, T] = {}

    def work() -> None:
        while True:
            try:
                gpu = waiting.popleft()
            except IndexError:
                return
            found[gpu.name] = compile_for(gpu)

    side_by_side(*[work] * min(os.cpu_count() or 1, len(gpus)))
    return found


def changed(names: list[str]) -> int:
    """Compile what is not known, for these of the GPUs or for all that the file has, and note it there. Returns 1 where
    something fails, spills or is slow that was not. Drivers are installed only where there is something to compile."""
    known = Known.read()
    now = digests(build(targets=["pumice_shaders"]) / "generated/glsl")
    stale = known.stale(now)
    if known.take(now):
        known.write()
    if not stale:
        print(f"fleet: {len(now)} variants of shaders and the drivers are those of {FILE.relative_to(ROOT)}")
        return 0
    gpus = chosen(names or list(known.gpus))
    install.setup(sets(gpus), quiet=True)
    built, worse = tools(gpus), []
    progress = Progress("fleet")
    try:
        found = at_once(gpus, lambda gpu: compiled(known, Compiler(gpu, built[gpu.emulated]), stale, progress))
    finally:
        progress.close()
    for gpu in gpus:
        worse += known.put(gpu.name, *found[gpu.name])
    if not names:
        known.drivers = drivers()
        known.write()
    print(
        f"fleet: {len(stale)} variants of shaders are new or changed, {len(worse)} pipelines are worse",
        *worse,
        sep="\n",
    )
    return 1 if worse else 0
