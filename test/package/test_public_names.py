# SPDX-License-Identifier: Apache-2.0
"""What dir() and completion show of the packages that load on first use: the public names and no module of ours."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    ("package", "more"),
    [("pumice", ["llm"]), ("pumice.llm", []), ("pumice.executorch", [])],
    ids=lambda value: str(value),
)
def test_dir_has_the_public_names_only(package, more) -> None:
    code = (
        f"import {package} as package, rlcompleter, sys\n"
        "assert 'torch' not in sys.modules or 'executorch' in package.__name__\n"
        "names = [name for name in dir(package) if not name.startswith('_')]\n"
        f"assert names == sorted([*package.__all__, *{more}]), names\n"
        "completer = rlcompleter.Completer({'package': package})\n"
        "found = {completer.complete('package.', i) for i in range(99)}\n"
        "assert {f'package.{name}' for name in names} <= {str(f).split('(')[0] for f in found}, found\n"
        "assert package.__name__ != 'pumice' or package.__version__\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
