# SPDX-License-Identifier: Apache-2.0
"""Runs commands of `pumice` as processes forked from one that has imported already what takes seconds to import.

A forked process has its own arguments, environment, folder, streams, Vulkan and exit status, and ends as any other.
What it does not show is what the imports do and print: README.md's commands and an export in test/cli start anew.

    python fork_server.py serve SOCKET          until its stdin is closed; prints a line when it is ready
    python fork_server.py call SOCKET PUMICE [WORD...]    the command `PUMICE WORD...`, forked if that is quicker
"""

from __future__ import annotations

import gc
import json
import os
import signal
import socket
import sys

WITH_TORCH = {"export", "quantize", "compare"}  # commands, also of `pumice llm`, that import torch


def suits(words: list[str]) -> bool:
    """Whether a new process would spend seconds on imports."""
    return bool(WITH_TORCH & set(words[:2]))


def call(path: str, words: list[str], streams: list[int], folder: str, environment: dict[str, str]) -> int:
    """The exit status of `pumice WORDS`, which has these stdin, stdout and stderr; TimeoutError when it was ended."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(300)
        connection.connect(path)
        asked = json.dumps([words, folder, environment]).encode()
        socket.send_fds(connection, [len(asked).to_bytes(8, "little")], streams)
        connection.sendall(asked)
        answers = connection.makefile()
        pid = int(answers.readline())
        try:
            return int(answers.readline())
        except BaseException:
            os.kill(pid, signal.SIGKILL)
            raise


def _receive(connection: socket.socket) -> tuple[list[str], str, dict[str, str], list[int]]:
    size, streams, _, _ = socket.recv_fds(connection, 8, 3)
    with connection.makefile("rb") as file:
        return *json.loads(file.read(int.from_bytes(size, "little"))), streams


def _become(words: list[str], folder: str, environment: dict[str, str], streams: list[int]) -> None:
    """What a new process has."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    sys.stdin, sys.stdout = open(0, closefd=False), open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, closefd=False)  # noqa: SIM115
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["pumice", *words]


def serve(path: str) -> bool:
    """Forks one process for each call; True in such a process."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    gc.freeze()  # the collector of a forked process need not look at what was imported here, nor copy its pages
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        print("ready", flush=True)
        if os.fork():
            sys.stdin.read()  # the end of who started it
            os.killpg(0, signal.SIGTERM)
        while True:
            connection, _ = listener.accept()
            if os.fork():
                connection.close()
                continue
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            asked = _receive(connection)
            pid = os.fork()
            if not pid:
                connection.close()
                _become(*asked)
                return True
            connection.sendall(f"{pid}\n".encode())
            connection.sendall(f"{os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])}\n".encode())
            os._exit(0)


if __name__ == "__main__":
    what, socket_path, *rest = sys.argv[1:]
    if what == "call":
        if suits(rest[1:]):
            sys.exit(call(socket_path, rest[1:], [0, 1, 2], os.getcwd(), dict(os.environ)))  # noqa: PTH109
        os.execv(rest[0], rest)
    import torch._dynamo  # noqa: F401
    import torchao.quantization  # noqa: F401
    import transformers  # noqa: F401

    import pumice
    import pumice.cli

    pumice.export  # noqa: B018 (imports it)
    pumice.llm.export  # noqa: B018
    if serve(socket_path):
        pumice.cli.main()
