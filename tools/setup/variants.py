# SPDX-License-Identifier: Apache-2.0
"""Which shader variants that the device can run a run of tests did not make: PUMICE_SHADER_LOG names the file to which
every process adds a line for each pipeline. Those of test/ops/variants_not_run.txt are known."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

from setup.building import IN_PLACE
from setup.paths import BUILD, ROOT, environment, launcher

NOT_RUN = ROOT / "test/ops/variants_not_run.txt"
LOG = BUILD / "junit/shaders.log"


def listed() -> list[dict]:
    """The shaders of `pumice-rt kernel list`, each with its variants, and whether the device runs them."""
    command = [*launcher(), BUILD / IN_PLACE / "bin/pumice-rt", "kernel", "list", "--json"]
    device = os.environ.get("PUMICE_DEVICE", "llvmpipe")
    done = subprocess.run(
        list(map(str, command)), cwd=ROOT, env=environment(PUMICE_DEVICE=device), capture_output=True, check=True
    )
    return json.loads(done.stdout)["shaders"]


def known() -> set[str]:
    """Those that need not run, as test/ops/variants_not_run.txt has them."""
    lines = NOT_RUN.read_text(encoding="utf-8").splitlines()
    return {line for line in lines if line and not line.startswith("#")}


def missed(shaders: list[dict], made: set[str]) -> list[str]:
    """Those that the device can run and that are not among `made`."""
    runs = (row["variant"] for shader in shaders for row in shader["variants"] if row["runs"])
    return [variant for variant in runs if variant not in made]


def left(log: Path = LOG) -> list[str]:
    """What this device can run, nothing ran, and is not known; with a line of counts and the names printed. What is
    known and did run is printed, too, to be struck."""
    made, expected = set(log.read_text().splitlines()) if log.exists() else set(), known()
    shaders = listed()
    runs, unseen = missed(shaders, set()), missed(shaders, made)
    names = [name for name in unseen if name not in expected]
    count = f"{len(names)} of {len(runs)}, and {len(unseen) - len(names)} that are known"
    ran = [name for name in runs if name in made & expected]
    print(f"shader variants that no test ran: {count}", *(f"    {name}" for name in names), sep="\n", flush=True)
    if ran:
        print(f"known, but they ran; strike them from {NOT_RUN.relative_to(ROOT)}:", *ran, sep="\n    ", flush=True)
    return names
