# SPDX-License-Identifier: Apache-2.0
"""How often the tests in test/reliability repeat: a few times in every run, in full by `./dev test-long`."""

from __future__ import annotations

import os

LONG = os.environ.get("PUMICE_LONG", "0") == "1"


def times(short: int, long: int) -> int:
    return long if LONG else short
