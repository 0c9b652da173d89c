# SPDX-License-Identifier: Apache-2.0
"""Writes test/profiles/: what the CPU drivers and the drivers of `./dev fleet` say of their devices.

    .venv/bin/python test/support/make_profiles.py [NAME...]

Needs `./dev setup --swiftshader` and the drivers of `./dev fleet`. Of a GPU that is here:
`pumice-rt devices --profile --device NAME > test/profiles/NAME.json`.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tools"))

from setup import fleet, paths  # noqa: E402

FOLDER = ROOT / "test/profiles"
TOOL = ROOT / "build/release/bin/pumice-rt"


def drivers() -> dict[str, dict[str, str]]:
    """The variables that a process needs to see each device, by the profile's name."""
    swiftshader = {"VK_DRIVER_FILES": str(paths.PREFIX / "swiftshader/vk_swiftshader_icd.json")}
    cpu = {"llvmpipe": {"PUMICE_DEVICE": "llvmpipe"}, "swiftshader": swiftshader | {"PUMICE_DEVICE": "SwiftShader"}}
    return cpu | {gpu.name: fleet.variables(gpu) for gpu in fleet.GPUS}


def main(names: list[str]) -> None:
    """Write each profile, or those named."""
    FOLDER.mkdir(exist_ok=True)
    for name, variables in drivers().items():
        if names and name not in names:
            continue
        command = [TOOL, "devices", "--profile"]
        environment = paths.environment(**variables)
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise SystemExit(f"{name}: {done.stderr}")
        profile = json.loads(done.stdout)
        if "nouveau" in variables.get("LD_PRELOAD", ""):  # whose stub has one or two, whatever the chip
            profile["compute_units"] = 0
        (FOLDER / f"{name}.json").write_text(json.dumps(profile, indent=1, sort_keys=True) + "\n")
        print(name)


if __name__ == "__main__":
    main(sys.argv[1:])
