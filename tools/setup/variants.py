# SPDX-License-Identifier: Apache-2.0
"""Which shader variants that the device can run a run of tests did not make: PUMICE_SHADER_LOG names the file to which
every process adds a line for each pipeline."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

from setup.building import IN_PLACE
from setup.paths import BUILD, ROOT, environment, launcher

LOG = BUILD / "junit/shaders.log"


def never_made(shaders: list[dict], made: set[str]) -> list[str]:
    """`shaders` as `pumice-rt kernel list --json` has them."""
    rows = (row for shader in shaders for row in shader["variants"])
    return [row["variant"] for row in rows if row["runs"] and row["variant"] not in made]


def text(log: Path = LOG) -> str:
    """A line of counts, and the variants by shader."""
    command = [*launcher(), BUILD / IN_PLACE / "bin/pumice-rt", "kernel", "list", "--json"]
    device = os.environ.get("PUMICE_DEVICE", "llvmpipe")
    done = subprocess.run(
        list(map(str, command)), cwd=ROOT, env=environment(PUMICE_DEVICE=device), capture_output=True, check=True
    )
    shaders = json.loads(done.stdout)["shaders"]
    left = never_made(shaders, set(log.read_text().splitlines()) if log.exists() else set())
    total = sum(row["runs"] for shader in shaders for row in shader["variants"])
    return "\n".join([f"shader variants that no test ran: {len(left)} of {total}", *(f"    {name}" for name in left)])
