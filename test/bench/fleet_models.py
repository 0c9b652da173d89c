# SPDX-License-Identifier: Apache-2.0
"""Makes the models of fleet.toml in one process: python test/bench/fleet_models.py FOLDER [NAME...]"""

from __future__ import annotations

import runpy
import sys
import tomllib
from pathlib import Path

HERE = Path(__file__).parent


def main() -> None:
    folder, *names = sys.argv[1:]
    models = tomllib.loads((HERE / "fleet.toml").read_text())
    for name in names or models:
        out = Path(folder) / f"{name}.pumice"
        partial = out.with_suffix(".part")
        script, *arguments = models[name]["make"].format(out=partial).split()
        sys.argv = [script, *arguments]
        runpy.run_path(str(HERE / script), run_name="__main__")
        partial.replace(out)
        print(name, flush=True)


if __name__ == "__main__":
    main()
