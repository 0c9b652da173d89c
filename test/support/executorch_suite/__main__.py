# SPDX-License-Identifier: Apache-2.0
"""Runs the tests that ExecuTorch's wheel carries for backends, with Pumice as the backend (plugin.py).

./dev test-executorch [-- pytest's arguments]    e.g. -- -k linear, or -- --record to write share.json
"""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

import pytest

TESTS = ("test/suite/operators", "test/suite/models", "vulkan/test/test_vulkan_delegate.py")
SECONDS = 300  # for a test; the suite has limits of its own, 120 for operators and 1200 for models


def main(arguments: list[str]) -> int:
    """Each test runs in a process of its own family, so that a crash or a hang costs that test only."""
    os.environ.setdefault("PUMICE_DEVICE", "llvmpipe")
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    (package,) = importlib.util.find_spec("executorch").submodule_search_locations  # type: ignore[union-attr, misc]
    backends = Path(package) / "backends"
    options = [
        "-q",
        "-rN",
        "--import-mode=importlib",
        "-p",
        "support.executorch_suite.plugin",
        "-p",
        "no:cacheprovider",
        f"--rootdir={backends}",
    ]
    options += ["--show-capture=no", "--tb=short", f"--timeout={SECONDS}", "--timeout-method=thread"]
    options += ["-n", str(len(os.sched_getaffinity(0))), "--dist=worksteal", "-W", "ignore"]
    return pytest.main([*options, *arguments, *(str(backends / test) for test in TESTS)])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
