# SPDX-License-Identifier: Apache-2.0
"""Runs a program of the checkout as a user types it."""

from __future__ import annotations

import functools
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from support import fork_server

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent


@functools.cache
def server() -> str:
    """The socket of the one fork server of this process, which ends with it."""
    path = f"{tempfile.mkdtemp(prefix='pumice-fork-')}/socket"
    command = [sys.executable, fork_server.__file__, "serve", path]
    server.process = subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )
    assert server.process.stdout.readline() == b"ready\n", server.process.communicate()[1]
    return path


def run(*command: object, code: int = 0, anew: bool = False, **environment: str) -> subprocess.CompletedProcess[str]:
    """The finished process; fails with its output when it ends with another status than `code`. A `pumice` that needs
    torch is forked from one that has it (support.fork_server), unless it is to start `anew`."""
    words, everything = [str(part) for part in command], {**os.environ, **environment}
    if words[0] == str(BIN / "pumice") and fork_server.suits(words[1:]) and not anew:
        done = _forked(words, everything)
    else:
        done = subprocess.run(words, env=everything, capture_output=True, text=True, timeout=300, cwd=ROOT)
    assert done.returncode == code, f"{command}: {done.returncode}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done


def _forked(words: list[str], environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err, Path(os.devnull).open() as none:
        streams = [none.fileno(), out.fileno(), err.fileno()]
        status = fork_server.call(server(), words[1:], streams, str(ROOT), environment)
        out.seek(0)
        err.seek(0)
        return subprocess.CompletedProcess(words, status, out.read(), err.read())


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
