# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
import torch
from support.unfused import check_pattern

FORMS = {
    "weight last": lambda x, w: x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * w,
    "weight first": lambda x, w: w * (torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6) * x),
}


class Norm(torch.nn.Module):
    def __init__(self, form: str) -> None:
        super().__init__()
        self.form, self.weight = form, torch.nn.Parameter(torch.randn(37))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return FORMS[self.form](x, self.weight)


@pytest.mark.parametrize("form", FORMS)
def test_rms_norm(form) -> None:
    torch.manual_seed(0)
    unfused = {"mul": 3, "mean": 1, "add": 1, "rsqrt": 1}
    check_pattern(Norm(form), torch.randn(5, 37), pattern="rms_norm", fused={"rms_norm": 1}, unfused=unfused)


def test_a_mean_over_another_dimension_stays() -> None:
    torch.manual_seed(0)
    norm = Norm("weight last")
    norm.forward = lambda x: x * torch.rsqrt(x.pow(2).mean(0, keepdim=True) + 1e-6) * norm.weight
    ops = {"mul": 3, "mean": 1, "add": 1, "rsqrt": 1}
    check_pattern(norm, torch.randn(5, 37), pattern="rms_norm", fused=ops, unfused=ops)
