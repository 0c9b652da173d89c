# SPDX-License-Identifier: Apache-2.0
"""The device under test, which PUMICE_DEVICE names."""

from __future__ import annotations

import functools
import os

import pumice


@functools.cache
def device() -> pumice.Device:
    """Its record."""
    name = os.environ.get("PUMICE_DEVICE", "llvmpipe")
    return next(each for each in pumice.devices() if name.lower() in each.name.lower())


def is_llvmpipe() -> bool:
    """Whether it is lavapipe's, the driver of CI: its matrices, subgroups and choices are known to tests."""
    return "llvmpipe" in device().name
