# SPDX-License-Identifier: Apache-2.0
"""A headless browser, pages that are watched, and the files of one model. `./dev test-browser` names the browser."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.command_line import BIN, ROOT, run
from support.watched_page import PROGRAM, Watched

if TYPE_CHECKING:
    from playwright.sync_api import Browser

# Only ./dev test-browser brings a browser and Playwright; without it there is nothing here to collect.
collect_ignore_glob = [] if PROGRAM else ["test_*.py"]

# No sandbox: it needs more rights than containers give, and what is opened was made here. WebGL without a GPU, too.
ARGUMENTS = ["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
ENCODER = ROOT / "test/support/image_encoder.py"


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        yield playwright.chromium.launch(executable_path=PROGRAM, args=ARGUMENTS)


@pytest.fixture
def opened(browser: Browser) -> Iterator[Callable[[str, int, int], Watched]]:
    """Opens an address in a window of a width and a height."""
    pages = []

    def open_(address: str, width: int, height: int) -> Watched:
        pages.append(browser.new_page(viewport={"width": width, "height": height}))
        watched = Watched(pages[-1])
        watched.page.goto(address)
        return watched

    yield open_
    for page in pages:
        page.close()


@pytest.fixture(scope="session")
def files(tmp_path_factory) -> Path:
    """The folder of encoder.pumice, report.html, trace.json and graph.json, by the commands that users give."""
    folder = tmp_path_factory.mktemp("files")
    model, pumice = folder / "encoder.pumice", BIN / "pumice"
    run(pumice, "export", f"{ENCODER}:build", "-o", model, "--report", folder / "export.json")
    more = ("--profile", "--export-report", folder / "export.json", "--device", "llvmpipe")
    run(pumice, "report", model, "-o", folder / "report.html", *more)
    staged = {"PUMICE_FEATURES": "staged"}  # with copies to and from the device, as a discrete GPU has
    run(pumice, "profile", model, "--trace", folder / "trace.json", "--device", "llvmpipe", **staged)
    run(pumice, "inspect", model, "--graph", folder / "graph.json")
    return folder
