# SPDX-License-Identifier: Apache-2.0
"""The file that PUMICE_VALIDATE_LOG names: a line for each Vulkan instance and each message of the validation layer, of
every process that inherits the variable."""

from __future__ import annotations

from collections.abc import Iterable


def complaints(lines: Iterable[str]) -> list[str]:
    """Messages, and instances without the layer where PUMICE_VALIDATE was lost (0: without it on purpose)."""
    return [line for line in lines if " message " in line or line.endswith("not validated")]
