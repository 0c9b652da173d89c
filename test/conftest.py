# SPDX-License-Identifier: Apache-2.0
"""Fixtures of every test: the device, a quick torch.export, silence of the validation layer, and `e2e`."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
import torch
import torch._export.utils as export_utils

os.environ.setdefault("PUMICE_DEVICE", "llvmpipe")

from support.end_to_end import EndToEnd

from pumice._pumice import validation_messages


def _scan_the_registry_once() -> None:
    """torch.export makes every composite operator known 30 times an export, a third of its time: once is enough until
    a library registers more of them."""
    scan, known = export_utils._materialize_cpp_cia_ops, 0

    def scan_what_is_new() -> None:
        nonlocal known
        count = len(torch._C._dispatch_get_registrations_for_dispatch_key("CompositeImplicitAutograd"))
        if count != known:
            scan()
            known = count

    export_utils._materialize_cpp_cia_ops = scan_what_is_new


_scan_the_registry_once()


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
