# SPDX-License-Identifier: Apache-2.0
"""Which shader variants that the device can run a run of tests did not make: PUMICE_SHADER_LOG names the file to which
every process adds a line for each pipeline. Those that are left, `pumice-rt kernel test --variant` runs, a small case
of a kernel for each; what no case launches there is a failure, unless test/ops/variants_not_run.txt says which test on
which other device does."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Set
from pathlib import Path

from setup.building import IN_PLACE
from setup.paths import BUILD, ROOT, environment, launcher
from setup.progress import StepFailed

NOT_RUN = ROOT / "test/ops/variants_not_run.txt"
LOG = BUILD / "junit/shaders.log"
# By its features a device chooses a kernel, where none can be forced: with these it chooses others, and others where
# weights are larger than a binding.
FEATURES = ("", "like_gpu", "-fragments", "-coopmat", "max_storage=4096")


def tool() -> Path:
    return BUILD / IN_PLACE / "bin/pumice-rt"


def kernel(*words: str, **more: str) -> str:
    """What `pumice-rt kernel` says, on the device of the tests. What failed or cannot run is in its rows."""
    device = os.environ.get("PUMICE_DEVICE", "llvmpipe")
    variables = environment(PUMICE_DEVICE=device, **more)
    command = [*map(str, launcher()), str(tool()), "kernel", *words]
    done = subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1, 4):
        raise StepFailed(f"{' '.join(command)[:500]}: status {done.returncode}\n{done.stderr[-2000:]}")
    return done.stdout


def listed() -> list[dict]:
    """The shaders of `pumice-rt kernel list`, each with its variants, and whether the device runs them."""
    return json.loads(kernel("list", "--json"))["shaders"]


def known() -> set[str]:
    """Those that another device runs, as test/ops/variants_not_run.txt has them."""
    lines = NOT_RUN.read_text(encoding="utf-8").splitlines()
    return {line for line in lines if line and not line.startswith("#")}


def made_by(log: Path) -> set[str]:
    return set(log.read_text().splitlines()) if log.exists() else set()


def missed(shaders: list[dict], made: set[str]) -> list[str]:
    """Those that the device can run and that are not among `made`."""
    runs = (row["variant"] for shader in shaders for row in shader["variants"] if row["runs"])
    return [variant for variant in runs if variant not in made]


def run_rest(
    shaders: list[dict], log: Path, call: Callable[..., str], *more: str, leave: Set[str] = frozenset()
) -> list[dict]:
    """Runs small cases for what is not in the log, but for those to `leave`; the rows of all that ran. `call` calls
    `pumice-rt kernel`, and has the log written; `more`: options of its test."""
    rows: list[dict] = []
    for features in FEATURES:
        names = [name for name in missed(shaders, made_by(log)) if name not in leave]
        if not names:
            break
        words = [f"--variant={name}" for name in names] + ([f"--features={features}"] if features else [])
        text = call("test", *words, *more, "--json")
        rows += [row for row in json.loads(text)["rows"] if row["status"] != "skipped"]
    return rows


def left(log: Path, call: Callable[..., str]) -> tuple[list[str], list[dict]]:
    """What this device can run, nothing ran, and is not known, with the rows of the cases that ran to find out. Counts
    and names are printed, and what is known and did run, to be struck."""
    expected, shaders = known(), listed()
    jobs = len(os.sched_getaffinity(0))
    rows = run_rest(shaders, log, call, "--replays=1", f"--jobs={min(jobs, 64)}", leave=expected)
    made = made_by(log)
    runs, unseen = missed(shaders, set()), missed(shaders, made)
    names = [name for name in unseen if name not in expected]
    count = f"{len(names)} of {len(runs)}, and {len(unseen) - len(names)} that another device runs"
    ran = [name for name in runs if name in made & expected]
    print(f"shader variants that no test ran: {count}", *(f"    {name}" for name in names), sep="\n", flush=True)
    if ran:
        print(f"known, but they ran; strike them from {NOT_RUN.relative_to(ROOT)}:", *ran, sep="\n    ", flush=True)
    return names, rows
