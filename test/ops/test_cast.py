# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
import torch

import pumice

DTYPES = [torch.float32, torch.float16, torch.int64, torch.int32, torch.uint8, torch.int8, torch.bool]


class Cast(torch.nn.Module):
    def __init__(self, *dtypes: torch.dtype):
        super().__init__()
        self.dtypes = dtypes

    def forward(self, x):
        return tuple(x.to(dtype) for dtype in self.dtypes)


def values(dtype: torch.dtype) -> torch.Tensor:
    """What both PyTorch and Pumice define the conversion of, in every dtype: integers wrap, fractions are dropped."""
    x = torch.tensor(
        [0.0, 1.0, -1.0, 0.4, -0.6, 1.999, -3.5, 100.25, 127.0, -128.0, 200.0, 255.0, -7.0, 2.5, 0.0, 60.0, 3.0]
    )
    return x.clamp(min=0).to(dtype) if dtype in (torch.uint8, torch.bool) else x.to(dtype)


@pytest.mark.parametrize("source", DTYPES, ids=str)
def test_to_every_other(e2e, source) -> None:
    others = [dtype for dtype in DTYPES if dtype != source]
    e2e.check(Cast(*others), values(source), reference="eager", all_features=True, expect_ops={"cast": len(others)})


def test_what_is_special(e2e) -> None:
    special = torch.tensor([float("inf"), -float("inf"), float("nan"), 1e6, -0.0])
    e2e.check(Cast(torch.bool), special)
    e2e.check(Cast(torch.float16), special, reference="eager")
    e2e.check(Cast(torch.float32), special.half(), reference="eager")
    e2e.check(Cast(torch.float32), torch.tensor([2**24 + 1, 2**24 + 3, -(2**31), 2**31 - 1], dtype=torch.int32))


def test_what_is_no_integer() -> None:
    """PyTorch leaves it open; docs/limits.md does not."""
    dtypes = [torch.int32, torch.int64, torch.uint8, torch.int8]
    x = torch.tensor([float("nan"), float("inf"), -float("inf")])
    least, most = -(2**31), 2**31 - 1
    want = [[0, most, least], [0, most, least], [0, 255, 0], [0, -1, 0]]
    for features in (None, "none,like_gpu"):
        session = pumice.load(bytes(pumice.export(Cast(*dtypes), (x,))), features=features)
        assert [result.tolist() for result in session(x)] == want


def test_a_wide_integer_wraps(e2e) -> None:
    x = torch.tensor([300, -300, 65535, 2**31 - 1, -(2**31)], dtype=torch.int32)
    e2e.check(Cast(torch.uint8, torch.int8, torch.bool), x)


def test_the_same_dtype_costs_nothing(e2e) -> None:
    program = e2e.check(Cast(torch.int64, torch.int32), torch.arange(9))
    assert program.report.operators == {"cast": 1}
