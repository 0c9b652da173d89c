# SPDX-License-Identifier: Apache-2.0
"""linear with float weights, the kernels it shares with the quantized ones, and activations fused into it."""

from __future__ import annotations

import pytest
import torch
from support.budget import ACTIVATION, MATMUL, Budget
from support.linear_rows import ALL, ROWS, check_rows
from torch.nn import functional as F


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
@pytest.mark.parametrize(("n", "k"), [(37, 70), (16, 64), (129, 65), (1, 1), (3, 1000)])
def test_shapes(monkeypatch, n, k, dtype, bias) -> None:
    torch.manual_seed(n + k)
    check_rows(monkeypatch, torch.nn.Linear(k, n, bias=bias).to(dtype).eval(), "linear")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
def test_every_kernel(monkeypatch, dtype) -> None:
    torch.manual_seed(3)
    check_rows(monkeypatch, torch.nn.Linear(70, 131).to(dtype).eval(), "linear", ALL, ROWS)


def test_batch_dimensions(e2e) -> None:
    e2e.check(
        torch.nn.Linear(24, 20), torch.randn(2, 3, 5, 24), budget=MATMUL, expect_ops={"linear": 1}, all_features=True
    )
    e2e.check(torch.nn.Linear(24, 20), torch.randn(24), budget=MATMUL)


def test_special_values(e2e) -> None:
    """An infinity or NaN in a row of x reaches that row only, padding of K included."""
    x = torch.randn(9, 30)
    x[2, 29], x[4, 0], x[7, 3] = float("inf"), float("nan"), -float("inf")
    e2e.check(torch.nn.Linear(30, 33), x, budget=MATMUL, reference="eager")


class Computed(torch.nn.Module):
    def forward(self, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        return F.linear(x, weight, bias)


def test_a_computed_weight_is_a_matmul(e2e) -> None:
    e2e.check(
        Computed(), torch.randn(3, 5, 24), torch.randn(20, 24), torch.randn(20), budget=MATMUL, expect_ops={"matmul": 1}
    )


class Activated(torch.nn.Module):
    def __init__(self, function, twice: bool = False) -> None:
        super().__init__()
        self.layer, self.function, self.twice = torch.nn.Linear(40, 50), function, twice

    def forward(self, x: torch.Tensor):
        y = self.layer(x)
        return (self.function(y), y) if self.twice else self.function(y)


FUNCTIONS = [F.relu, F.gelu, lambda x: F.gelu(x, approximate="tanh"), F.silu]
FUSED = Budget(ACTIVATION.atol + 1e-6, ACTIVATION.rtol, MATMUL.of_max, why="MATMUL, then ACTIVATION")


@pytest.mark.parametrize("function", FUNCTIONS, ids=["relu", "gelu", "gelu_tanh", "silu"])
def test_activation_is_fused(e2e, function) -> None:
    for rows in (2, 70):
        program = e2e.check(Activated(function), torch.randn(rows, 40) * 4, budget=FUSED)
        assert program.report.operators == {"linear": 1}
    program = e2e.check(Activated(function, twice=True), torch.randn(2, 40) * 4, budget=FUSED)
    assert program.report.operators["linear"] == 1 and len(program.report.operators) == 2


class Residual(torch.nn.Module):
    def __init__(self, n: int, case: str) -> None:
        super().__init__()
        self.layer, self.case = torch.nn.Linear(40, n), case

    def forward(self, x: torch.Tensor, other: torch.Tensor):
        y = self.layer(x)
        match self.case:
            case "left":
                return y + other
            case "right":
                return other + y
            case "self":
                return y + y
            case "read twice":
                return y + other, y
            case "scaled":
                return torch.add(y, other, alpha=2)
            case _:
                return y + other[:1]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
@pytest.mark.parametrize("n", [52, 37])
def test_residual_is_fused(e2e, n, dtype) -> None:
    for rows in (3, 70):
        x, other = torch.randn(rows, 40).to(dtype), torch.randn(rows, n).to(dtype)
        for case in ("left", "right"):
            module = Residual(n, case).to(dtype)
            e2e.check(module, x, other, budget=MATMUL, expect_ops={"linear": 1, "add": 0})
    for case in ("self", "read twice", "scaled", "broadcast"):
        rounded = Budget(
            2.0**-8 if dtype is torch.float16 else 0.0, MATMUL.rtol, MATMUL.of_max, why="y is stored, then added"
        )
        e2e.check(Residual(n, case).to(dtype), x, other, budget=rounded, expect_ops={"linear": 1, "add": 1})
