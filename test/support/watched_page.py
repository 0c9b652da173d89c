# SPDX-License-Identifier: Apache-2.0
"""A page of a browser that is watched, and servers of this machine for it."""

from __future__ import annotations

import io
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from PIL import Image

if TYPE_CHECKING:
    from playwright.sync_api import Page

PROGRAM = os.environ.get("PUMICE_BROWSER", "")
START = 30  # seconds that a server may take to answer


class Watched:
    """A page, what was wrong with it, and which other machines it asked."""

    def __init__(self, page: Page) -> None:
        self.page, self.errors, self.asked = page, list[str](), list[str]()
        page.set_default_timeout(60_000)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("console", lambda said: self.errors.append(said.text) if said.type == "error" else None)
        page.route(lambda url: not url.startswith(("file:", "data:", "blob:", "http://127.0.0.1")), self._refuse)

    def _refuse(self, route) -> None:
        self.asked.append(route.request.url)
        route.abort()

    def picture(self, name: str) -> Image.Image:
        """What the window shows, and as a file of that name in PUMICE_PICTURES, in 64 colours: a few ten kB."""
        with Image.open(io.BytesIO(self.page.screenshot())) as drawn:
            colours = drawn.convert("RGB").quantize(64, dither=Image.Dither.NONE)
        colours.save(Path(os.environ["PUMICE_PICTURES"]) / name, optimize=True)
        return colours


@contextmanager
def served(*command: object) -> Iterator[str]:
    """The address of a server of this machine; `{port}` in the command is its port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = [sys.executable, "-m", *(str(word).format(port=port) for word in command)]
    server = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    address, end = f"http://127.0.0.1:{port}", time.monotonic() + START
    try:
        while True:
            try:
                urllib.request.urlopen(address, timeout=START).close()
                break
            except OSError:
                assert server.poll() is None and time.monotonic() < end, f"{words} does not answer"
                time.sleep(0.1)
        yield address
    finally:
        server.terminate()
        server.wait(timeout=START)
