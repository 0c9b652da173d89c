# SPDX-License-Identifier: Apache-2.0
"""`./dev fleet`: what the compilers of many GPUs make of the kernels, on a machine that has none of these GPUs.

Mesa's drivers hold their whole shader compilers. Its shims (libNAME_noop_drm_shim.so, preloaded) stand in for the
kernel's side: devices with their features and limits, memory, pipelines and their statistics are real, submits return
at once and compute nothing. So a kernel that does not compile, spills registers or compiles for seconds is seen here;
whether it is right, and how fast, is not.
"""

from __future__ import annotations

import json
import subprocess
import tomllib
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path

from setup import fleet_limit, fleet_steps
from setup.building import EMULATED, IN_PLACE, build
from setup.fleet_gpus import GPUS, Gpu, chosen, launcher, variables
from setup.paths import BUILD, PREFIX, PYTHON, ROOT, environment
from setup.progress import Progress, StepFailed

FOLDER = BUILD / "fleet"  # NAME.json: a Result
MODELS = ROOT / "test/bench/fleet.toml"
SLOW_MS = 1000
SECONDS = 600  # for the kernels of an operator, or for a call of a model
PIPELINE_SECONDS = 300  # for one pipeline
AT_ONCE = 10  # variants that neither operators nor models make, in one step of a sweep: for Mali a step takes minutes
# An emulated compiler takes so many times as long: 98 pipelines of softmax, convolutions and linear layers for an
# Adreno 740, whose driver Debian builds for both machines, took 3.7 s of processor time, and 20.2 s under qemu.
EMULATION = 5.5

# Of the drivers' own words for what they count, by ours: RADV's, turnip's, ANV's, Honeykrisp's, NVK's. Spills are
# counts, or bytes in their place.
STATISTICS = {
    "instructions": ("instructions", "instruction count"),
    "registers": ("vgprs", "registers used", "max live registers", "gprs", "number of gprs"),
    "waves": ("subgroups per simd", "max waves per core", "threads", "max warps/sm"),
    "spills": (
        "spilled vgprs", "scratch size", "stp count", "ldp count", "spill count", "fill count", "spills", "fills",
        "spills to memory", "fills from memory",
    ),
}  # fmt: skip


@dataclass
class Pipeline:
    """A line of PUMICE_PIPELINE_LOG; `ms` is processor time. `models`: those that made it. `picked`: selection chooses
    it for a case of an operator."""

    shader: str
    spec: list[int]
    subgroup_size: int
    ms: float
    instructions: int = 0
    registers: int = 0
    waves: int = 0
    spills: int = 0
    models: list[str] = field(default_factory=list)
    picked: bool = False

    @property
    def key(self) -> tuple[str, tuple[int, ...], int]:
        return self.shader, tuple(self.spec), self.subgroup_size

    @property
    def name(self) -> str:
        return f"{self.shader} {self.spec}"

    @property
    def family(self) -> str:
        """The shader's file: conv2d_dot of conv2d_dot[f32]."""
        return self.shader.partition("[")[0]


def pipeline(line: dict) -> Pipeline:
    said = {name.lower(): value for name, value in line.get("statistics", {}).items()}
    counts = {ours: int(sum(said.get(name, 0) for name in theirs)) for ours, theirs in STATISTICS.items()}
    return Pipeline(line["shader"], line["spec"], line["subgroup_size"], line["ms"], **counts)


def read_log(log: Path, *models: str) -> list[Pipeline]:
    """The pipelines of a log that were made; it is removed."""
    lines = map(json.loads, log.read_text().splitlines() if log.exists() else [])
    found = [pipeline(line) for line in lines if "ms" in line]
    log.unlink(missing_ok=True)
    for each in found:
        each.models.extend(models)
    return found


@dataclass
class Result:
    """Of one GPU: what the driver calls itself, the variants that it cannot run with the features that it lacks, the
    pipelines, and what failed: operators, calls of models and single pipelines."""

    gpu: str
    device: str
    commit: str
    variants: int = 0
    spirv: dict[str, str] = field(default_factory=dict)  # a hash of each variant's
    gated: dict[str, list[str]] = field(default_factory=dict)
    pipelines: list[Pipeline] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)

    def add(self, pipelines: list[Pipeline]) -> None:
        """Each pipeline once, with its longest time: operators and models share some."""
        known = {each.key: each for each in self.pipelines}
        for each in pipelines:
            if (first := known.setdefault(each.key, each)) is not each:
                first.ms = max(first.ms, each.ms)
                first.models = sorted({*first.models, *each.models})
                first.picked = first.picked or each.picked
        self.pipelines = list(known.values())

    def save(self) -> None:
        FOLDER.mkdir(parents=True, exist_ok=True)
        (FOLDER / f"{self.gpu}.json").write_text(json.dumps(asdict(self)) + "\n")


def stored(gpu: Gpu) -> Result | None:
    """The result of an earlier run."""
    path = FOLDER / f"{gpu.name}.json"
    if not path.exists():
        return None
    given = json.loads(path.read_text())
    return Result(**given | {"pipelines": [Pipeline(**each) for each in given["pipelines"]]})


@dataclass
class Compiler:
    """A GPU's: every call is a process of its own, as a compiler that dies is a row and not the end."""

    gpu: Gpu
    tool: Path

    def __post_init__(self) -> None:
        FOLDER.mkdir(parents=True, exist_ok=True)
        self.log = FOLDER / f"{self.gpu.name}.jsonl"
        self.log.unlink(missing_ok=True)
        # Staged: results are zeros, since no copy fills the memory that the host reads them from; the self test would
        # switch kernels off for that.
        own = {"PUMICE_PIPELINE_LOG": str(self.log), "PUMICE_FEATURES": "staged,untested"}
        self.settings = environment(**variables(self.gpu) | own)
        self.seconds = round(SECONDS * (EMULATION if self.gpu.emulated else 1))
        self.watch = fleet_limit.Watch(self.log)
        self.late: fleet_limit.Key | None = None  # the pipeline for which the last call was ended
        self.picked: set[fleet_limit.Key] = set()  # what selection chose in a step

    def call(self, *arguments: str | Path) -> tuple[str, str]:
        """What the tool printed, and why it did not end well."""
        command = [*launcher(self.gpu), self.tool, *arguments]
        self.watch = fleet_limit.Watch(self.log)
        ended = fleet_limit.run(command, self.settings, self.watch, self.seconds, PIPELINE_SECONDS)
        self.late = ended.late
        if self.late:
            return "", f"{self.late[0]} {list(self.late[1])}: not finished in {PIPELINE_SECONDS} s"
        if ended.status is None:
            return "", f"not done in {self.seconds} s"
        said = (ended.err.strip().splitlines() or [""])[-1]
        well = ended.status in (0, 4)  # 4: nothing of it runs there
        return ended.out, "" if well else f"status {ended.status}: {said[:300]}"

    def made(self, *models: str) -> list[Pipeline]:
        """The pipelines of the calls since the last one of this. An emulated compiler's times are made those of a real
        processor."""
        found = read_log(self.log, *models)
        for each in found:
            each.ms /= EMULATION if self.gpu.emulated else 1
        return found

    def device(self) -> tuple[str, dict]:
        """Its name, and what `kernel list` says of the shaders there."""
        text, why = self.call("devices", "--json")
        found = [] if why else json.loads(text)["devices"]
        if not found:
            raise StepFailed(f"{self.gpu.name}: the driver shows no device: {why}")
        return f"{found[0]['name'].strip()}, {found[0]['driver_version']}", json.loads(
            self.call("kernel", "list", "--json")[0]
        )

    def steps(self, spirv: dict[str, str]) -> fleet_steps.Steps:
        """Of a sweep with this driver."""
        stamp = PREFIX / ("drv-arm64" if self.gpu.emulated else "gpus") / "stamp.json"
        key = fleet_steps.digest(repr(self.gpu), files=[stamp])
        return fleet_steps.Steps(FOLDER / f"{self.gpu.name}.steps", key, spirv)

    def found(self, compile_it: Callable[[], dict[str, str]], *models: str) -> fleet_steps.Found:
        """What failed of a step, and the pipelines that it made."""
        self.picked.clear()
        failed, pipelines = compile_it(), self.made(*models)
        for each in pipelines:
            each.picked = each.key in self.picked
        return failed, [asdict(each) for each in pipelines]

    def operator(self, name: str) -> dict[str, str]:
        """Compile the kernels of an operator's cases. Returns why that failed, by name; empty: it did not."""
        why = self._compile("--op", name)
        return {name: why} if why else {}

    def model(self, name: str, call: str) -> dict[str, str]:
        """A call of fleet.toml. Returns as operator()."""
        command, *options = call.split()
        options += ["--runs", "1", "--warmup", "0"] if command == "bench" else []
        limits = ["--max-seconds", str(self.seconds), "--timeout-ms", str(1000 * self.seconds)]
        why = self.call(command, FOLDER / f"models/{name}.pumice", *options, *limits)[1]
        return {f"{name}: {call}": why} if why else {}

    def others(self, wanted: list[Pipeline]) -> dict[str, str]:
        failed: dict[str, str] = {}
        self.listed(wanted, failed)
        return failed

    def _compile(self, *what: str | Path) -> str:
        text, why = self.call("kernel", "compile", *what, "--json")
        rows = json.loads(text)["rows"] if text.startswith("{") else []
        bad = [f"{row['kernel']} {row['title']}: {row['why']}" for row in rows if row["status"] == "failed"]
        for each in (made for row in rows if row["kernel"] == "pick" for made in row.get("made", ())):
            self.picked.add((each["shader"], tuple(each["spec"]), each["subgroup_size"]))
        return bad[0] if bad else why

    def listed(self, wanted: list[Pipeline], failed: dict[str, str]) -> None:
        """Compile these pipelines. Where the compiler dies of one, halves of them are tried until it is found; what
        takes it too long is left out."""
        if not wanted:
            return
        lines = FOLDER / f"{self.gpu.name}.wanted"
        text = [
            json.dumps({"shader": each.shader, "spec": each.spec, "subgroup_size": each.subgroup_size}) + "\n"
            for each in wanted
        ]
        lines.write_text("".join(text))
        why = self._compile("--pipelines", lines)
        lines.unlink()
        if self.late:
            left = self.watch.done | {self.late}
            failed[f"{self.late[0]} {list(self.late[1])}"] = why
            self.listed([each for each in wanted if each.key not in left], failed)
        elif why and len(wanted) > 1:
            half = len(wanted) // 2
            self.listed(wanted[:half], failed)
            self.listed(wanted[half:], failed)
        elif why:
            failed[wanted[0].name] = why


def compile_for(gpu: Gpu, tool: Path, only: list[str], spirv: dict[str, str], progress: Progress) -> Result:
    """The operators' cases, the models, and the variants that neither of them made. What an earlier run that was
    stopped has found is not compiled again, but with `only`."""
    compiler = Compiler(gpu, tool)
    device, listed = compiler.device()
    result = Result(gpu.name, device, _commit())
    steps = None if only else compiler.steps(spirv)
    at = ""

    def take(step: str, asked: str, compile_it: Callable[[], dict[str, str]], *models: str) -> None:
        nonlocal at
        at = step
        make = partial(compiler.found, compile_it, *models)
        failed, pipelines = steps.take(step, asked, make) if steps else make()
        result.failed |= failed
        result.add([Pipeline(**each) for each in pipelines])

    with progress.step(gpu.name, lambda: f"{at}: {len(compiler.watch.done)} pipelines"):
        rows = {row["op"]: fleet_steps.digest(row) for row in listed["operators"]}
        for name in only or rows:
            take(f"operator {name}", rows.get(name, ""), partial(compiler.operator, name))
        if only:
            return result
        for model, call in calls():
            asked = fleet_steps.digest(call, files=[FOLDER / f"models/{model}.pumice"])
            take(f"{model}: {call}", asked, partial(compiler.model, model, call), model)
        rest = unmade(_variants(listed, result), result.pipelines, matrices(listed))
        for first in range(0, len(rest), AT_ONCE):
            some = rest[first : first + AT_ONCE]
            asked = fleet_steps.digest([asdict(each) for each in some])
            take(f"of other variants those from {first}", asked, partial(compiler.others, some))
        at = "those that took longest, again"
        again(compiler, result)
    if steps:
        steps.end()
    return result


def again(compiler: Compiler, result: Result) -> None:
    """The slow pipelines once more: of both times the shorter counts, as others may use the processor, too."""
    slow = {each.key: each for each in result.pipelines if each.ms > SLOW_MS}
    compiler.listed(list(slow.values()), {})
    for each in compiler.made():
        if first := slow.get(each.key):
            first.ms = min(first.ms, each.ms)


def matrices(listed: dict) -> set[str]:
    """The variants that multiply cooperative matrices."""
    rows = [row for shader in listed["shaders"] for row in shader["variants"]]
    return {row["variant"] for row in rows if "coopmat" in row["needs"]}


def unmade(variants: list[str], made: list[Pipeline], of_matrices: set[str]) -> list[Pipeline]:
    """A pipeline of each variant that neither operators nor models make, with the shader's own constants. These may ask
    for a matrix that the device does not have: a variant of matrices takes those of another one of its file."""
    found = []
    for name in variants:
        own = Pipeline(name, [], 0, 0)
        alike = [each for each in made if name in of_matrices and each.spec and each.family == own.family]
        like = max(alike, key=lambda each: (each.spec, each.subgroup_size), default=own)
        found.append(Pipeline(name, like.spec, like.subgroup_size, 0))
    return found


def _variants(listed: dict, result: Result) -> list[str]:
    """Those that run there and that no pipeline is made of. Notes what those lack that do not run."""
    rows = [row for shader in listed["shaders"] for row in shader["variants"]]
    has = set(listed["device"]["features"])
    result.variants = len(rows)
    result.gated = {row["variant"]: sorted(set(row["needs"]) - has) for row in rows if not row["runs"]}
    made = {each.shader for each in result.pipelines}
    return [row["variant"] for row in rows if row["runs"] and row["variant"] not in made]


def _commit() -> str:
    command = ["git", "rev-parse", "--short", "HEAD"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip() or "unknown"


def calls() -> list[tuple[str, str]]:
    """Each model of fleet.toml with each of its calls."""
    return [(name, call) for name, model in tomllib.loads(MODELS.read_text()).items() for call in model["runs"]]


def make_models(progress: Progress) -> None:
    """Those files that are not there or older than what makes them."""
    folder = FOLDER / "models"
    folder.mkdir(parents=True, exist_ok=True)
    sources = [*MODELS.parent.glob("*_file.py"), MODELS, *(ROOT / "python/pumice").rglob("*.py")]
    newest = max(path.stat().st_mtime for path in sources)
    files = {name: folder / f"{name}.pumice" for name in dict(calls())}
    old = [name for name, path in files.items() if not path.exists() or path.stat().st_mtime < newest]
    if not old:
        return
    with progress.step("models"):
        command = [PYTHON, "-W", "ignore", ROOT / "test/bench/fleet_models.py", folder, *old]
        done = subprocess.run(command, env=environment(), capture_output=True, text=True, check=False)
        if done.returncode:
            raise StepFailed(f"the models were not made:\n{done.stderr[-2000:]}")


def tools(gpus: list[Gpu]) -> dict[bool, Path]:
    """pumice-rt, built for this machine and, where one of them is emulated, for that one, too."""
    presets = {False: IN_PLACE} | ({True: EMULATED} if any(gpu.emulated for gpu in gpus) else {})
    return {emulated: build(preset, ["pumice-rt"]) / "bin/pumice-rt" for emulated, preset in presets.items()}


def run(names: list[str], only: list[str]) -> int:
    """Compile for each GPU, all operators or those in `only`. All: write the page from these and earlier summaries.
    Returns 1 where a compiler failed."""
    from setup import fleet_known, fleet_page, fleet_summary

    gpus = chosen(names)
    built = tools(gpus)
    spirv = fleet_known.digests(BUILD / IN_PLACE / "generated/glsl")
    failed = False
    progress = Progress("fleet")
    try:
        if not only:
            make_models(progress)
        for gpu in gpus:
            result = compile_for(gpu, built[gpu.emulated], only, spirv, progress)
            summary = fleet_summary.Summary.of(result)
            if not only:
                result.spirv = spirv
                result.save()
                summary.write()
            progress.say(fleet_page.line_of(summary))
            for what, why in result.failed.items():
                progress.say(f"{gpu.name}: {what} failed: {why}")
                failed = True
    finally:
        progress.close()
    if not only:
        fleet_page.write(fleet_summary.kept())
        results = {gpu.name: result for gpu in GPUS if (result := stored(gpu))}
        if all(name in results for name in fleet_known.CHECKED):
            fleet_known.Known.of([results[name] for name in fleet_known.CHECKED], spirv).write()
    return 1 if failed else 0
