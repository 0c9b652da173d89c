# SPDX-License-Identifier: Apache-2.0
"""Ends a process in the ways that go wrong most often: python -m support.exits WAY FILE SECONDS. No torch."""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
import time
from collections.abc import Callable

import numpy as np

import pumice

SHAPE = (512, 512)  # of the file's one input
kept: list[object] = []  # alive until the interpreter ends


def call(session: pumice.Session) -> np.ndarray:
    return session.run_flat([np.ones(SHAPE, np.float32)])[0]


def run_for_ever(session: pumice.Session) -> None:
    while True:
        call(session)


def in_thread(session: pumice.Session) -> None:
    kept.append(session)
    threading.Thread(target=run_for_ever, args=(session,), daemon=True).start()


def live(session: pumice.Session, path: str, seconds: float) -> None:
    """Sessions and results in globals, in a cycle and in a handler of atexit."""
    cycle: list[object] = [pumice.load(path)]
    cycle.append(cycle)
    kept.extend([session, session.method("forward"), call(session), cycle])
    atexit.register(call, session)


def daemon(session: pumice.Session, path: str, seconds: float) -> None:
    """A daemon thread in the middle of a run, and one in the middle of a load."""
    in_thread(session)
    threading.Thread(target=lambda: [pumice.load(path) for _ in iter(int, 1)], daemon=True).start()
    time.sleep(seconds)


def fork(session: pumice.Session, path: str, seconds: float) -> None:
    """While a thread runs: a child that only ends, and one whose calls are refused; the parent goes on."""
    in_thread(session)
    time.sleep(seconds)
    for calls in (False, True):
        child = os.fork()
        if child == 0:
            if calls:
                refused(session)
            sys.exit(7)
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 7, status
    call(session)


def refused(session: pumice.Session) -> None:
    for use in (lambda: call(session), session.reset, lambda: session.memory):
        try:
            use()
        except pumice.InvalidInputError as error:
            assert error.code == "WrongState", error
        else:
            raise AssertionError("a forked child used the session")


def interrupt(session: pumice.Session, path: str, seconds: float) -> None:
    """Ctrl-C while the main thread and another one run."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    in_thread(session)
    threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT)).start()
    run_for_ever(session)


def error(session: pumice.Session, path: str, seconds: float) -> None:
    """An exception that nobody catches, its traceback holding the session."""
    in_thread(session)
    time.sleep(seconds)
    session.run_flat([])


WAYS: dict[str, Callable[[pumice.Session, str, float], None]] = {
    way.__name__: way for way in (live, daemon, fork, interrupt, error)
}

if __name__ == "__main__":
    loaded = pumice.load(sys.argv[2])
    call(loaded)
    WAYS[sys.argv[1]](loaded, sys.argv[2], float(sys.argv[3]))
