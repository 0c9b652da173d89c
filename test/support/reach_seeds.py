# SPDX-License-Identifier: Apache-2.0
"""More seeds of fuzz_execute: of the kernel tool's cases, the few that reach what no other seed does.

python -m support.reach_seeds   adds test/fuzz/corpus/execute/OPERATOR-NUMBER.pumice, after
                                ./dev build coverage --target fuzz --target case_files

libFuzzer's merge chooses, as each of the devices that `./dev fuzz` runs fuzz_execute as."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from support.op_seeds import SEEDS

ROOT = Path(__file__).parents[2]
PROGRAMS = ROOT / "build/coverage/bin"
sys.path.insert(0, str(ROOT / "tools"))
from setup.testing import FUZZ_FEATURES  # noqa: E402


def choose(cases: Path, scratch: Path, features: str) -> None:
    """Copy the cases that reach more, as one device, to the seeds."""
    chosen = scratch / "chosen"
    chosen.mkdir()
    before = {seed.read_bytes() for seed in SEEDS.iterdir()}
    for seed in SEEDS.iterdir():
        (chosen / seed.name).symlink_to(seed)
    profile = {"PUMICE_FEATURES": features, "LLVM_PROFILE_FILE": os.devnull}
    command = [PROGRAMS / "fuzz_execute", "-merge=1", "-use_counters=0", "-timeout=60", chosen, cases]
    subprocess.run(command, env=os.environ | profile, check=True, capture_output=True)
    kept = {path.read_bytes() for path in chosen.iterdir()} - before
    for case in cases.iterdir():
        if (file := case.read_bytes()) in kept - before:
            (SEEDS / f"{case.name}.pumice").write_bytes(file)
            before.add(file)  # cases that differ elsewhere may have the same file
    for path in chosen.iterdir():
        path.unlink()
    chosen.rmdir()
    print(f"{features or 'as it is'}: {len(kept)} seeds", flush=True)


def main() -> None:
    with tempfile.TemporaryDirectory() as temporary:
        cases = Path(temporary) / "cases"
        cases.mkdir()
        profile = {"LLVM_PROFILE_FILE": os.devnull}
        subprocess.run([PROGRAMS / "case_files", cases], env=os.environ | profile, check=True)
        for features in FUZZ_FEATURES:
            choose(cases, Path(temporary), features)


if __name__ == "__main__":
    main()
