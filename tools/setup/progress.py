# SPDX-License-Identifier: Apache-2.0
"""Child processes that can be stopped, and a line a step on the terminal."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import contextmanager
from pathlib import Path


class StepFailed(Exception):
    """A step could not be done; the text says why and what to try."""


class Interrupted(Exception):
    """Raised in worker threads once the user has asked to stop."""


_children: set[subprocess.Popen] = set()
_lock = threading.Lock()
_stopping = threading.Event()


def check_stop() -> None:
    if _stopping.is_set():
        raise Interrupted


def spawn(command: Iterable, **options) -> subprocess.Popen:
    """Start a child in a session of its own, so that only `stop_children` ends it."""
    with _lock:
        check_stop()
        child = subprocess.Popen([str(word) for word in command], start_new_session=True, **options)
        _children.add(child)
    return child


def reap(child: subprocess.Popen) -> int:
    status = child.wait()
    with _lock:
        _children.discard(child)
    check_stop()
    return status


def stop_children(grace: float = 5.0) -> None:
    """Ask every child's session to end, and end what is left of it after `grace` seconds."""
    with _lock:
        _stopping.set()
        groups = {child.pid for child in _children}
    for number, patience in ((signal.SIGINT, grace), (signal.SIGKILL, 1.0)):
        groups = {group for group in groups if _signal(group, number)}
        deadline = time.monotonic() + patience
        while groups and time.monotonic() < deadline:
            for child in list(_children):
                child.poll()  # a leader that has ended stays in its group until somebody asks
            groups = {group for group in groups if _signal(group, 0)}
            time.sleep(0.02)


def _signal(group: int, number: int) -> bool:
    """Signal a process group; says whether it still has members."""
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def run(command: Iterable, *, log: Path, each_line: Callable[[str], None] | None = None, **options) -> str:
    """Run a command quietly: its output goes to `log` and is returned. Raises StepFailed with that output's end."""
    command = [str(word) for word in command]
    log.parent.mkdir(parents=True, exist_ok=True)
    text = []
    with log.open("a") as file:
        file.write(f"$ {' '.join(command)}\n")
        child = spawn(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options
        )
        for line in child.stdout:
            file.write(line)
            file.flush()
            text.append(line)
            if each_line:
                each_line(line)
        status = reap(child)
    if status:
        end = "".join(f"    {line}" for line in text[-12:]).rstrip()
        raise StepFailed(f"{Path(command[0]).name} ended with status {status}; the end of {log}:\n{end}")
    return "".join(text)


def show(command: Iterable, *, check: bool = True, **options) -> int:
    """Run a command whose output the user sees."""
    command = [str(word) for word in command]
    sys.stdout.flush()
    status = reap(spawn(command, **options))
    if status and check:
        raise StepFailed(f"{' '.join(command[:3])} ... ended with status {status}")
    return status


def side_by_side(*works: Callable[[], None]) -> None:
    """Run the functions in threads; the first failure ends the others."""
    errors: list[BaseException] = []

    def guarded(work: Callable[[], None]) -> None:
        try:
            work()
        except Interrupted:
            pass
        except BaseException as error:
            errors.append(error)
            stop_children()

    threads = [threading.Thread(target=guarded, args=(work,), daemon=True) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        while thread.is_alive():
            thread.join(0.2)  # short, so that Ctrl-C is seen
    if errors:
        raise errors[0]


class Progress:
    """Prints which steps run, for how long and with how many bytes. Steps may run in several threads."""

    def __init__(self, title: str):
        self.title = title
        self.begun = time.monotonic()
        self.running: dict[str, tuple[float, Callable[[], str]]] = {}
        self.lock = threading.Lock()
        self.live = sys.stdout.isatty()
        self.quiet_since = self.begun
        self.closed = threading.Event()
        self.ticker = threading.Thread(target=self._tick, daemon=True)
        self.ticker.start()

    def say(self, text: str) -> None:
        with self.lock:
            clear = "\r\x1b[K" if self.live else ""
            print(f"{clear}[{time.monotonic() - self.begun:6.1f} s] {text}", flush=True)
            self.quiet_since = time.monotonic()

    @contextmanager
    def step(self, name: str, detail: Callable[[], str] = lambda: ""):
        """Print when a step has ended. When it fails nothing is printed: the exception has the message."""
        check_stop()
        begun = time.monotonic()
        with self.lock:
            self.running[name] = (begun, detail)
        try:
            yield
            note = detail()
            self.say(f"{name:<16} done in {time.monotonic() - begun:5.1f} s{', ' + note if note else ''}")
        finally:
            with self.lock:
                self.running.pop(name, None)

    def _tick(self) -> None:
        while not self.closed.wait(0.5 if self.live else 2.0):
            now = time.monotonic()
            with self.lock:
                if not self.running:
                    continue
                parts = []
                for name, (begun, detail) in self.running.items():
                    note = detail()
                    parts.append(f"{name} {now - begun:.0f} s{' ' + note if note else ''}")
                text = f"[{now - self.begun:6.1f} s] ... {' | '.join(parts)}"
                if self.live:
                    width = max(40, os.get_terminal_size().columns)
                    print("\r\x1b[K" + text[: width - 1], end="", flush=True)
                elif now - self.quiet_since > 15:
                    print(text, flush=True)
                    self.quiet_since = now

    def close(self) -> None:
        self.closed.set()
        self.ticker.join()
        if self.live:
            print("\r\x1b[K", end="", flush=True)


def megabytes(count: int) -> str:
    return f"{count / 1e6:.1f} MB"


def folder_bytes(folder: Path) -> int:
    """The size of the plain files in one folder (not below it)."""
    total = 0
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                try:
                    if entry.is_file(follow_symlinks=False):
                        total += entry.stat(follow_symlinks=False).st_size
                except FileNotFoundError:
                    pass
    except FileNotFoundError:
        pass
    return total
