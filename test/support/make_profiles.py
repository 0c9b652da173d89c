# SPDX-License-Identifier: Apache-2.0
"""Writes test/profiles/: what the CPU drivers and the drivers of `./dev fleet` say of their devices.

    .venv/bin/python test/support/make_profiles.py [NAME...]

Needs `./dev setup --swiftshader`, the drivers of `./dev fleet` and what that builds. Of a GPU that is here:
`pumice-rt devices --profile --device NAME > test/profiles/NAME.json`.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tools"))

from setup import fleet_gpus, paths  # noqa: E402
from setup.building import EMULATED, IN_PLACE  # noqa: E402

FOLDER = ROOT / "test/profiles"


def tool(preset: str) -> Path:
    return paths.BUILD / preset / "bin/pumice-rt"


def drivers() -> dict[str, tuple[list[str | Path], dict[str, str]]]:
    """pumice-rt's command and the variables that it needs to see each device, by the profile's name."""
    swiftshader = {"VK_DRIVER_FILES": str(paths.PREFIX / "swiftshader/vk_swiftshader_icd.json")}
    cpu = {"llvmpipe": {"PUMICE_DEVICE": "llvmpipe"}, "swiftshader": swiftshader | {"PUMICE_DEVICE": "SwiftShader"}}
    found = {name: ([tool(IN_PLACE)], variables) for name, variables in cpu.items()}
    for gpu in fleet_gpus.GPUS:
        command = [*fleet_gpus.launcher(gpu), tool(EMULATED if gpu.emulated else IN_PLACE)]
        found[gpu.name] = command, fleet_gpus.variables(gpu)
    return found


def main(names: list[str]) -> None:
    """Write each profile, or those named."""
    FOLDER.mkdir(exist_ok=True)
    for name, (command, variables) in drivers().items():
        if names and name not in names:
            continue
        environment = paths.environment(**variables)
        done = subprocess.run(
            [*command, "devices", "--profile"], env=environment, capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise SystemExit(f"{name}: {done.stderr}")
        profile = json.loads(done.stdout)
        if "nouveau" in variables.get("LD_PRELOAD", ""):  # whose stub has one or two, whatever the chip
            profile["compute_units"] = 0
        (FOLDER / f"{name}.json").write_text(json.dumps(profile, indent=1, sort_keys=True) + "\n")
        print(name)


if __name__ == "__main__":
    main(sys.argv[1:])
