# SPDX-License-Identifier: Apache-2.0
"""Fixtures of every test: the device, a quick torch.export, silence of the validation layer, and `e2e`."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

os.environ.setdefault("PUMICE_DEVICE", "llvmpipe")

from support import quick_export
from support.end_to_end import EndToEnd

from pumice._pumice import validation_messages

quick_export.install()


@pytest.fixture(autouse=True)
def silence() -> Iterator[None]:
    """With PUMICE_VALIDATE=1 a test fails when Vulkan's validation layer says anything."""
    before = validation_messages()
    yield
    said = validation_messages() - before
    assert said == 0, f"{said} messages of the validation layer; they are on stderr"


@pytest.fixture(scope="session")
def e2e() -> EndToEnd:
    return EndToEnd()
