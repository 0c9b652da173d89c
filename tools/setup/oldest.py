# SPDX-License-Identifier: Apache-2.0
"""`./dev test-oldest`: a short set of tests with the oldest torch and torchao that pyproject.toml allows."""

from __future__ import annotations

import os
import re
import shutil
import sys
import tomllib
from collections.abc import Sequence

from setup.install import BASE_PYTHON, PipLines
from setup.paths import BUILD, JUNIT, LOGS, ROOT, environment, launcher, locked
from setup.progress import Progress, run, show

PLACE = BUILD / "oldest"
PYTHON = PLACE / "bin/python"
REPORT = JUNIT / "oldest.xml"
# Export in every form, quantization, dynamic sizes, and torch.compile; what needs neither transformers nor ExecuTorch.
TESTS = [
    *("test/models/test_small.py", "test/export/test_export.py", "test/export/test_quant.py"),
    "test/ops/test_choose_qparams.py",  # whose least scale differs between versions of torchao
    *("test/export/test_shapes.py", "test/dynamo/test_compile.py", "test/dynamo/test_weights.py"),
    *("test/dynamo/test_memory.py", "test/dynamo/test_sizes.py", "test/fusion/test_needed_rows.py"),
]


def requirements() -> list[str]:
    """What the package needs, the lowest torch and torchao of its extra `export`, and pytest."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lowest = [re.sub(r">=(\d+\.\d+),.*", r"==\1.*", each) for each in project["optional-dependencies"]["export"]]
    return [*project["dependencies"], *lowest, "pytest", "pytest-timeout", "pytest-xdist"]


def install(pip: Sequence[str]) -> None:
    """The environment build/oldest, once for each list of requirements. `pip`: more arguments of pip install."""
    recipe = "\n".join([*requirements(), sys.version])
    stamp = PLACE / "stamp.txt"
    with locked("oldest"):
        if stamp.exists() and stamp.read_text() == recipe:
            return
        shutil.rmtree(PLACE, ignore_errors=True)
        log = LOGS / "oldest.log"
        names = ", ".join(each for each in requirements() if "torch" in each)
        progress = Progress(f"oldest: bringing {names} into build/oldest")
        lines = PipLines()
        command = [PYTHON, "-m", "pip", "install", "--no-compile", "--no-cache-dir", "--progress-bar", "off"]
        command += [*pip, *requirements()]
        with progress.step("python packages", lines.note):
            run([BASE_PYTHON, "-m", "venv", PLACE], log=log)
            run(command, log=log, each_line=lines)
        progress.close()
        stamp.write_text(recipe)


def run_tests(pip: Sequence[str], few: bool = False) -> int:
    """Installs, and runs the tests with the checkout's build. Returns pytest's exit status; REPORT is JUnit's."""
    install(pip)
    paths = os.pathsep.join([str(ROOT / "python"), str(ROOT / "test")])
    more = {
        "VIRTUAL_ENV": str(PLACE),
        "PYTHONPATH": paths,
        "PUMICE_DEVICE": os.environ.get("PUMICE_DEVICE", "llvmpipe"),
        "OMP_NUM_THREADS": "1",
    }
    jobs = str(len(os.sched_getaffinity(0)))
    command = [*launcher(), PYTHON, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", jobs]
    command += [f"--junitxml={REPORT}", *(["--few"] if few else []), *TESTS]
    return show(command, check=False, cwd=ROOT, env=environment(**more))
