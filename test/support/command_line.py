# SPDX-License-Identifier: Apache-2.0
"""Runs a program of the checkout as a user types it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent


def run(*command: object, code: int = 0, **environment: str) -> subprocess.CompletedProcess[str]:
    """The finished process; fails with its output when it ends with another status than `code`."""
    done = subprocess.run(
        [str(part) for part in command],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=300,
        cwd=ROOT,
    )
    assert done.returncode == code, f"{command}: {done.returncode}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done


def start(*command: object) -> subprocess.Popen[str]:
    """A process to interrupt, its output in pipes. A job in the background inherits that SIGINT is ignored."""
    return subprocess.Popen(
        [str(part) for part in command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
