# SPDX-License-Identifier: Apache-2.0
"""`./dev test-bounds`: every operator's cases under the validation layer's GPU-assisted mode, which checks each access
of a shader to a buffer or a texture against what is bound."""

from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path

from setup.building import build
from setup.paths import ROOT, environment, launcher
from setup.testing import FEW, Totals

# Robust access off: with it an access outside of a binding is defined, and the layer says nothing.
SETTINGS = {"PUMICE_VALIDATE": "bounds", "PUMICE_FEATURES": "-robust"}
# Cases of operators with many kernels, in small: the layer makes a shader many times as long.
PRODUCTS = ["--case", "m=1|33,n=37,k=96,bias=1", *FEW]
CONVOLUTIONS = ["--case", "b=1|3,c=33,o=20,h=9,w=8,k=3,s=2,bias=1"]


def check(totals: Totals, only: list[str]) -> None:
    """Run the cases of all operators, or of those in `only`; a message of the layer is a failure."""
    tool = [*launcher(), build() / "bin/pumice-rt", "kernel"]
    listed = json.loads(_run([*tool, "list", "--json"], environment()).stdout)["operators"]
    names = [row["op"] for row in listed if not only or row["op"] in only]
    calls = {row["op"] for row in listed if len(row["kernels"]) < 2}
    groups = [([name for name in names if name in calls], [])]
    groups += [([name], CONVOLUTIONS if "conv" in name else PRODUCTS) for name in names if name not in calls]
    for group, cases in groups:
        words = [word for name in group for word in ("--op", name)]
        if words:
            _test([*tool, "test", *words, *cases, "--replays", "1", "--json"], totals)
            print(f"{group[0] if len(group) == 1 else f'{len(group)} operators'}: {totals.line()} so far", flush=True)


def _test(command: list[object], totals: Totals) -> None:
    with tempfile.NamedTemporaryFile("r", suffix=".log") as log:
        done = _run(command, environment(**SETTINGS, PUMICE_VALIDATE_LOG=log.name))
        lines = log.read().splitlines()
    rows = json.loads(done.stdout)["rows"] if done.stdout else []
    for status in (row["status"] for row in rows):
        totals.passed += status == "ok"
        totals.failed += status == "failed"
        totals.skipped += status == "skipped"
    messages = [line for line in lines if " message " in line]
    watched = any(line.endswith("instance validated") for line in lines)
    if messages or not watched or done.returncode not in (0, 4):  # 4: none of the kernels runs here
        totals.failed += 1
        print(f"{len(messages)} messages of the layer, status {done.returncode}\n{done.stderr[:4000]}", flush=True)


def _run(command: list[object], variables: dict[str, str]) -> subprocess.CompletedProcess[str]:
    words = [str(word) if isinstance(word, Path) else word for word in command]
    return subprocess.run(words, cwd=ROOT, env=variables, capture_output=True, text=True, check=False)
