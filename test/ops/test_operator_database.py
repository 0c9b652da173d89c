# SPDX-License-Identifier: Apache-2.0
"""PyTorch's own samples for every operator of its database, in each dtype that eager PyTorch takes and a device has:
right, or refused with a reason; nothing else. Of each operator one sample in one dtype, which a hash of its name picks;
all 50,000 where PUMICE_SAMPLES is "all", as `./dev test --all` has it. `python -m support.operator_database --all` in
test/ counts them."""

from __future__ import annotations

import os
import zlib
from typing import Any

import pytest
import torch
from support import operator_database

DTYPES = (torch.float32, torch.float16, torch.int64, torch.int32, torch.bool, torch.uint8, torch.int8)
ALL = os.environ.get("PUMICE_SAMPLES") == "all"


@pytest.mark.parametrize("info", operator_database.database(), ids=lambda info: info.name)
def test_samples(info: Any) -> None:
    picked = zlib.crc32(info.name.encode())
    dtypes = [dtype for dtype in DTYPES if dtype in info.dtypes]
    for dtype in dtypes if ALL else [dtypes[picked % len(dtypes)]]:
        samples = list(enumerate(info.sample_inputs("cpu", dtype, requires_grad=False)))
        first = picked // len(dtypes) % max(len(samples), 1)
        for number, sample in samples if ALL else samples[first : first + 1]:
            found = operator_database.run(info, sample)
            assert found.kind in ("right", "refused", "eager"), f"{dtype} {number} {found.kind}: {found.why}"
