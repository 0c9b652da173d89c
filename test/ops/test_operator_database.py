# SPDX-License-Identifier: Apache-2.0
"""PyTorch's own samples for every operator of its database, in each dtype that eager PyTorch takes and a device has:
right, or refused with a reason; nothing else. Of each operator one sample in one dtype, which a hash of its name picks;
all 50,000, each dtype a test of its own, where PUMICE_SAMPLES is "all", as `./dev test --all` has it.
`python -m support.operator_database --all` in test/ counts them."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from support import operator_database

DTYPES = (torch.float32, torch.float16, torch.int64, torch.int32, torch.bool, torch.uint8, torch.int8)
ALL = os.environ.get("PUMICE_SAMPLES") == "all"


def _cases() -> Iterator[Any]:
    for info in operator_database.database():
        dtypes = [dtype for dtype in DTYPES if dtype in info.dtypes]
        picked = zlib.crc32(info.name.encode()) % len(dtypes)
        for dtype in dtypes if ALL else [dtypes[picked]]:
            name = f"{info.name}-{dtype}".replace("torch.", "") if ALL else info.name
            yield pytest.param(info, dtype, len(dtypes), id=name)


@pytest.mark.parametrize(("info", "dtype", "dtypes"), _cases())
def test_samples(info: Any, dtype: torch.dtype, dtypes: int) -> None:
    samples = list(enumerate(info.sample_inputs("cpu", dtype, requires_grad=False)))
    first = zlib.crc32(info.name.encode()) // dtypes % max(len(samples), 1)
    for number, sample in samples if ALL else samples[first : first + 1]:
        found = operator_database.run(info, sample)
        assert found.kind in ("right", "refused", "eager"), f"{dtype} {number} {found.kind}: {found.why}"
