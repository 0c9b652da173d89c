# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
import torch
from support.budget import ULP, Budget

ARCTANGENT = Budget(rtol=8 * ULP, why="the polynomial of glsl/atan.glsl: less than 6 ulp")
SPECIAL = [0.0, -0.0, 0.4142135, 0.4142136, -1.0, 2.4142135, 2.4142137, 1e-6, -1e-30, 3e38, torch.inf, -torch.inf]


class Atan(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.atan()


def values(dtype: torch.dtype, *shape: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(1)
    return (torch.randn(shape, generator=generator) * 3).to(dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
def test_float(e2e, dtype) -> None:
    special = torch.tensor([*SPECIAL, torch.nan], dtype=dtype)
    runs = [values(dtype, 7, 33) / 8, values(dtype, 7, 33) * 1e3]
    e2e.check(Atan(), values(dtype, 7, 33), runs=runs, budget=ARCTANGENT, expect_ops=["atan"], all_features=True)
    e2e.check(Atan(), special, budget=ARCTANGENT)


@pytest.mark.parametrize("dtype", [torch.int64, torch.uint8, torch.bool], ids=str)
def test_integers_become_floats(e2e, dtype) -> None:
    e2e.check(Atan(), values(torch.float32, 5, 9).abs().to(dtype), budget=ARCTANGENT, expect_ops=["cast", "atan"])


def test_every_kind_of_number(e2e) -> None:
    """Evenly over the exponents of fp32, where the argument is reduced and where it is not."""
    bits = torch.arange(0, 0x7F800000, 65521, dtype=torch.int64).to(torch.int32)
    e2e.check(Atan(), bits.view(torch.float32), budget=ARCTANGENT, reference="f64")


def test_odd(e2e) -> None:
    import pumice

    x = values(torch.float32, 1000)
    session = pumice.load(bytes(pumice.export(Atan(), (x,))))
    assert torch.equal(session(-x), -session(x))
    assert torch.signbit(session(torch.full((1000,), -0.0))).all()
