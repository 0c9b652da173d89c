# SPDX-License-Identifier: Apache-2.0
"""Fixtures of every test: the device, a quick torch.export, silence of the validation layer, and `e2e`."""

from __future__ import annotations

import gc
import os
import tempfile
import zlib
from collections.abc import Iterator

import pytest

os.environ.setdefault("PUMICE_DEVICE", "llvmpipe")

import torch
from support import quick_export
from support.end_to_end import EndToEnd
from support.one_call import OneCall
from support.validation_log import complaints

import pumice
from pumice._pumice import validation_messages

quick_export.install()

# Every process that a test starts writes into it, too; a worker of pytest has one of its own. Open to the end.
_log = tempfile.NamedTemporaryFile("r", prefix="pumice-validation-", suffix=".log")  # noqa: SIM115
os.environ["PUMICE_VALIDATE_LOG"] = _log.name


ONE_OF = 6


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--few", action="store_true", help="of each test's cases one in six; `./dev test` gives it")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """With --few, of the cases of each test the first, and of the others those that a hash of their names picks: the
    same in every run. Tests marked `every` keep all, those marked `thorough` none."""
    if not config.getoption("few"):
        return
    seen: set[str] = set()
    kept, left = [], []
    for item in items:
        test = item.nodeid.partition("[")[0]
        chosen = test not in seen or zlib.crc32(item.nodeid.encode()) % ONE_OF == 0 or "every" in item.keywords
        seen.add(test)
        (kept if chosen and "thorough" not in item.keywords else left).append(item)
    config.hook.pytest_deselected(items=left)
    items[:] = kept


def pytest_collection_finish() -> None:
    """What is imported by now stays to the end: the garbage collector, which took up to a tenth of the time of an
    export, need not look at it, and comes less often."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 100)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """The random numbers of a test depend on its name alone: not on the tests before it, nor on the run."""
    torch.manual_seed(zlib.crc32(item.nodeid.encode()))


@pytest.fixture(autouse=True)
def silence() -> Iterator[None]:
    """With PUMICE_VALIDATE=1 a test fails when Vulkan's validation layer says anything, in this process or in one that
    it started, and when one used Vulkan without the layer and without PUMICE_VALIDATE=0."""
    before = validation_messages()
    yield
    said = validation_messages() - before
    lines = _log.read().splitlines()
    assert said == 0, f"{said} messages of the validation layer; they are on stderr"
    if os.environ.get("PUMICE_VALIDATE") == "1":
        wrong = complaints(lines)
        assert not wrong, f"in a process that the test started: {wrong}"


@pytest.fixture(scope="module", autouse=True)
def open_devices(request: pytest.FixtureRequest) -> Iterator[None]:
    """Keeps devices open for the tests of a module that compare numbers: drivers take 70 to 500 ms to open one."""
    if request.path.parent.name not in ("ops", "fusion", "models"):
        yield
        return
    program = OneCall()
    program.call("relu", [program.input(torch.float32, (1,))], torch.float32, (1,))
    held = [pumice.load(program.bytes(), features=features) for features in (None, "none,like_gpu")]
    yield
    del held


@pytest.fixture(scope="session")
def e2e() -> EndToEnd:
    return EndToEnd()
