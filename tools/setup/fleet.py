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
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from setup.building import build
from setup.paths import BUILD, PREFIX, ROOT, environment
from setup.progress import Progress, StepFailed

PAGE = ROOT / "docs/fleet.md"
FOLDER = BUILD / "fleet"  # NAME.jsonl: a line for each pipeline; NAME.json: what became of each operator
SLOW_MS = 1000
OPERATOR_SECONDS = 600


@dataclass(frozen=True)
class Gpu:
    """A GPU of Mesa's: `name` on the page, the shim, the driver's manifest and the variable that chooses the chip."""

    name: str
    title: str
    shim: str
    driver: str
    variable: tuple[str, str] | None = None


GPUS = (
    Gpu("polaris10", "AMD Polaris (GCN 4)", "amdgpu", "radeon", ("AMDGPU_GPU_ID", "polaris10")),
    Gpu("vega10", "AMD Vega (GCN 5)", "amdgpu", "radeon", ("AMDGPU_GPU_ID", "vega10")),
    Gpu("navi21", "AMD RDNA 2", "amdgpu", "radeon", ("AMDGPU_GPU_ID", "navi21")),
    Gpu("navi31", "AMD RDNA 3", "amdgpu", "radeon", ("AMDGPU_GPU_ID", "navi31")),
    Gpu("gfx1201", "AMD RDNA 4", "amdgpu", "radeon", ("AMDGPU_GPU_ID", "gfx1201")),
    Gpu("adreno630", "Qualcomm Adreno 630", "freedreno", "freedreno", ("FD_GPU_ID", "630")),
    Gpu("adreno740", "Qualcomm Adreno 740", "freedreno", "freedreno", ("FD_GPU_ID", "740")),
    Gpu("adreno830", "Qualcomm Adreno 830", "freedreno", "freedreno", ("FD_GPU_ID", "830")),
    Gpu("m1", "Apple M1 (Honeykrisp)", "asahi", "asahi"),
    Gpu("turing", "NVIDIA Turing (NVK)", "nouveau", "nouveau", ("NOUVEAU_CHIPSET", "162")),
    Gpu("ampere", "NVIDIA Ampere (NVK)", "nouveau", "nouveau", ("NOUVEAU_CHIPSET", "172")),
)


def variables(gpu: Gpu) -> dict[str, str]:
    """What a process must have to see the GPU, and nothing else."""
    libraries = next((PREFIX / "gpus/usr/lib").glob("*-linux-gnu"))
    chosen = dict([gpu.variable]) if gpu.variable else {}
    return chosen | {
        "LD_PRELOAD": str(libraries / f"lib{gpu.shim}_noop_drm_shim.so"),
        "VK_DRIVER_FILES": str(PREFIX / f"gpus/{gpu.driver}.json"),
        "LD_LIBRARY_PATH": str(PREFIX / "gpus"),
        "MESA_SHADER_CACHE_DISABLE": "true",
        "PUMICE_CACHE_DIR": "off",
        "PUMICE_DEVICE": "0",
        "PUMICE_FEATURES": "",
    }


def spills(statistics: dict[str, float]) -> bool:
    """Whether registers did not fit, in the words of each driver's compiler: counts, or bytes in their place."""
    names = ("Spilled VGPRs", "Scratch size", "STP Count", "LDP Count", "Spill count", "Fill count", "Spills", "Fills")
    return any(statistics.get(name) for name in names)


@dataclass
class Result:
    """Of one GPU: what the driver calls itself, its pipelines, the operators that failed or took too long."""

    gpu: Gpu
    device: str
    pipelines: list[dict]
    failed: dict[str, str]
    commit: str


def read_log(log: Path) -> list[dict]:
    """The pipelines, each once, with the longest time that it took: operators share some."""
    found: dict[tuple, dict] = {}
    for line in log.read_text().splitlines() if log.exists() else []:
        each = json.loads(line)
        known = found.setdefault((each["shader"], *each["spec"], each["subgroup_size"]), each)
        known["ms"] = max(known["ms"], each["ms"])
    return list(found.values())


def compile_for(gpu: Gpu, tool: Path, operators: list[str], folder: Path, progress: Progress) -> Result:
    """Compile the kernels of each operator in a process of its own: a compiler that dies is a row, not the end."""
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / f"{gpu.name}.jsonl"
    log.unlink(missing_ok=True)
    settings = environment(**variables(gpu), PUMICE_PIPELINE_LOG=str(log))
    devices = subprocess.run([tool, "devices", "--json"], env=settings, capture_output=True, text=True, check=False)
    found = json.loads(devices.stdout)["devices"] if devices.returncode == 0 else []
    if not found:
        raise StepFailed(f"{gpu.name}: the driver shows no device\n{devices.stderr[-2000:]}")
    result = Result(gpu, f"{found[0]['name']}, {found[0]['driver_version']}", [], {}, _commit())
    done = 0
    with progress.step(gpu.name, lambda: f"{done} of {len(operators)} operators"):
        for name in operators:
            if why := _why_not(tool, name, settings):
                result.failed[name] = why
            done += 1
    result.pipelines = read_log(log)
    keep = {"device": result.device, "failed": result.failed, "commit": result.commit}
    (folder / f"{gpu.name}.json").write_text(json.dumps(keep, indent=1) + "\n")
    return result


def _why_not(tool: Path, operator: str, settings: dict[str, str]) -> str:
    """Compile the kernels of an operator; empty where all of them compile."""
    command = [tool, "kernel", "compile", "--op", operator, "--json"]
    try:
        done = subprocess.run(
            command, env=settings, capture_output=True, text=True, check=False, timeout=OPERATOR_SECONDS
        )
    except subprocess.TimeoutExpired:
        return f"not compiled in {OPERATOR_SECONDS} s"
    rows = json.loads(done.stdout)["rows"] if done.stdout.startswith("{") else []
    bad = [f"{row['kernel']} {row['title']}: {row['why']}" for row in rows if row["status"] == "failed"]
    if bad:
        return bad[0]
    ended = done.returncode in (0, 4)  # 4: none of them runs there
    return "" if ended else f"status {done.returncode}: {done.stderr.strip()[-300:]}"


def _commit() -> str:
    command = ["git", "rev-parse", "--short", "HEAD"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip() or "unknown"


def stored(gpu: Gpu) -> Result | None:
    """The result of an earlier run."""
    path = FOLDER / f"{gpu.name}.json"
    if not path.exists():
        return None
    return Result(gpu, pipelines=read_log(FOLDER / f"{gpu.name}.jsonl"), **json.loads(path.read_text()))


def line_of(result: Result) -> str:
    """A row of the page's first table."""
    spilling = [each for each in result.pipelines if spills(each.get("statistics", {}))]
    slow = [each for each in result.pipelines if each["ms"] > SLOW_MS]
    worst = max(result.pipelines, key=lambda each: each["ms"], default={"ms": 0, "shader": "-"})
    slowest = f"{worst['ms'] / 1000:.2f} s {worst['shader']}"
    counts = (len(result.pipelines), len(result.failed), len(spilling), len(slow))
    cells = (result.gpu.title, result.device, result.commit, *counts)
    return (
        f"| {' | '.join(map(str, cells))} | {slowest} | {sum(each['ms'] for each in result.pipelines) / 1000:.0f} s |"
    )


def family(shader: str) -> str:
    """The file of a variant: conv2d_dot of conv2d_dot[f32]."""
    return shader.partition("[")[0]


def page(results: list[Result]) -> str:
    """The whole page."""
    head = "| GPU | device | commit | pipelines | operators that failed | spill | above 1 s | slowest | all |"
    about = __doc__.split("\n\n")[1].replace("\n", " ")
    lines = ["# The kernels in the compilers of other GPUs", "", f"Written by `./dev fleet`. {about}", ""]
    lines += [head, "|" + "---|" * 9, *map(line_of, results), ""]
    lines += [
        "## What spills",
        "",
        "Pipelines whose registers do not fit, by shader file and GPU; a file without any is left out.",
        "",
    ]
    counts = {
        result.gpu.name: Counter(
            family(each["shader"]) for each in result.pipelines if spills(each.get("statistics", {}))
        )
        for result in results
    }
    files = sorted({name for count in counts.values() for name in count})
    lines += [f"| shader | {' | '.join(counts)} |", "|---|" + "---|" * len(counts)]
    lines += [f"| {name} | {' | '.join(str(count[name] or '') for count in counts.values())} |" for name in files]
    slow: dict[str, list[str]] = {}
    for result in results:
        worst: dict[str, float] = {}
        for each in result.pipelines:
            name = family(each["shader"])
            worst[name] = max(worst.get(name, 0), each["ms"])
        for name, ms in worst.items():
            if ms > SLOW_MS:
                slow.setdefault(name, []).append(f"{result.gpu.name} {ms / 1000:.1f}")
    if slow:
        lines += ["", "## What takes more than a second to compile", "", "| shader | GPU: seconds |", "|---|---|"]
        lines += [f"| {name} | {', '.join(where)} |" for name, where in sorted(slow.items())]
    bad = [(result.gpu.name, *each) for result in results for each in result.failed.items()]
    if bad:
        lines += ["", "## What failed", "", "| GPU | operator | why |", "|---|---|---|"]
        lines += [f"| {name} | {operator} | {why.replace(chr(10), ' ')} |" for name, operator, why in bad]
    return "\n".join(lines) + "\n"


def run(names: list[str], only: list[str]) -> int:
    """Compile for each GPU, all operators or those in `only`. All: write the page from these and earlier results.
    Returns 1 where a compiler failed."""
    if unknown := set(names) - {gpu.name for gpu in GPUS}:
        raise StepFailed(f"no GPU {', '.join(sorted(unknown))}; there are {', '.join(gpu.name for gpu in GPUS)}")
    failed = False
    tool = build(targets=["pumice-rt"]) / "bin/pumice-rt"
    listed = subprocess.run(
        [tool, "kernel", "list", "--json"],
        env=environment(PUMICE_DEVICE="llvmpipe"),
        capture_output=True,
        text=True,
        check=True,
    )
    known = [row["op"] for row in json.loads(listed.stdout)["operators"]]
    operators = [name for name in known if not only or name in only]
    progress = Progress("fleet")
    try:
        for gpu in GPUS:
            if names and gpu.name not in names:
                continue
            result = compile_for(gpu, tool, operators, FOLDER / "some" if only else FOLDER, progress)
            progress.say(line_of(result))
            for operator, why in result.failed.items():
                progress.say(f"{gpu.name}: {operator} failed: {why}")
                failed = True
    finally:
        progress.close()
    if not only:
        PAGE.write_text(page([result for gpu in GPUS if (result := stored(gpu))]))
    return 1 if failed else 0
