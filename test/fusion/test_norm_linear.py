# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
import torch
from support.unfused import check_pattern
from torch import nn

import pumice


class Head(nn.Module):
    """The end of a decoder: a norm and a layer; `both`: the norm's result is an output, too."""

    def __init__(self, both: bool = False) -> None:
        super().__init__()
        self.weight, self.both = nn.Parameter(1 + 0.1 * torch.randn(64)), both
        self.layer = nn.Linear(64, 33)

    def forward(self, x: torch.Tensor) -> torch.Tensor | tuple[torch.Tensor, torch.Tensor]:
        x = self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))
        return (self.layer(x), x) if self.both else self.layer(x)


@pytest.mark.parametrize("rows", [1, 9])
@pytest.mark.parametrize("scheme", [None, "int4"])
def test_norm_linear(scheme, rows) -> None:
    torch.manual_seed(0)
    module = Head()
    if scheme:
        pumice.quantize(module, scheme, group_size=32)
    ops = {"fused": {"fused_linear": 1}, "unfused": {"linear_q4gsw" if scheme else "linear": 1, "rms_norm": 1}}
    check_pattern(module, torch.randn(1, rows, 64), pattern="norm_linear", rtol=2e-5, **ops)


def test_a_norm_that_is_read_elsewhere_stays() -> None:
    torch.manual_seed(0)
    ops = {"linear": 1, "rms_norm": 1}
    check_pattern(Head(both=True), torch.randn(3, 64), pattern="norm_linear", rtol=2e-5, fused=ops, unfused=ops)
