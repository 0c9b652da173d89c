# SPDX-License-Identifier: Apache-2.0
"""TorchDynamo keeps what it has compiled by the code that it compiled: each test begins with nothing."""

from __future__ import annotations

import pytest
import torch


@pytest.fixture(autouse=True)
def fresh_dynamo() -> None:
    torch._dynamo.reset()
