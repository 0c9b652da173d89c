# SPDX-License-Identifier: Apache-2.0
"""The parts of a mixture of experts against their own eager form: a row, and many that are sorted by their experts."""

from __future__ import annotations

import pytest
import torch
from support.experts import EXPERTS, Experts, inputs
from torch import nn

import pumice
from pumice.llm.mixture import ExpertLinear

FEATURES = (None, "none", "like_gpu", "none,like_gpu")


def exported(module: nn.Module, *example: torch.Tensor) -> bytes:
    rows = {0: torch.export.Dim("rows", min=1, max=200)}
    program = pumice.export(module.eval(), example, dynamic_shapes=(rows,) * len(example))
    assert program.report.operators["expert_linear"] == 2
    return bytes(program)


@pytest.mark.parametrize(("act", "scheme"), [("silu", None), ("gelu", "int8"), ("gelu_tanh", "int4"), ("none", "int4")])
def test_both_products(act, scheme) -> None:
    torch.manual_seed(0)
    module = Experts(act, scheme)
    data = exported(module, *inputs(4))
    for features in FEATURES:
        session = pumice.load(data, features=features)
        for rows in (4, 1, 2, 133):
            with torch.no_grad():
                want = module(*inputs(rows))
            torch.testing.assert_close(session(*inputs(rows)), want, atol=2e-5, rtol=2e-5)


def test_all_rows_may_have_one_expert() -> None:
    torch.manual_seed(0)
    module = Experts("relu", None)
    session = pumice.load(exported(module, *inputs(4)))
    for expert in (0, EXPERTS - 1):
        x, chosen, factors = inputs(50)
        chosen = torch.full_like(chosen, expert)
        with torch.no_grad():
            want = module(x, chosen, factors)
        torch.testing.assert_close(session(x, chosen, factors), want, atol=2e-5, rtol=2e-5)


@pytest.mark.parametrize("rows", [1, 60])
@pytest.mark.parametrize("bad", [-1, EXPERTS, 2**31 - 1])
def test_an_expert_that_does_not_exist_ends_the_run(rows, bad) -> None:
    torch.manual_seed(0)
    module = Experts("silu", "int4")
    session = pumice.load(exported(module, *inputs(4)))
    x, chosen, factors = inputs(rows)
    wrong = chosen.clone()
    wrong[rows // 2, 1] = bad
    with pytest.raises(pumice.InvalidInputError, match=rf"index {bad} .*outside 0\.\.{EXPERTS - 1}"):
        session(x, wrong, factors)
    with pytest.raises(IndexError):
        module(x, wrong, factors)
    with torch.no_grad():
        torch.testing.assert_close(session(x, chosen, factors), module(x, chosen, factors), atol=2e-5, rtol=2e-5)


class Router(nn.Module):
    def __init__(self, normalize: bool) -> None:
        super().__init__()
        self.normalize = normalize

    def forward(self, logits: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.ops.pumice.route_experts(logits, 4, self.normalize)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
@pytest.mark.parametrize("normalize", [True, False])
def test_the_router_is_topk_of_softmax(normalize, dtype) -> None:
    logits = torch.stack([torch.randperm(130, generator=torch.Generator().manual_seed(i)) for i in range(9)])
    logits = (logits / 8 - 8).to(dtype)
    data = bytes(pumice.export(Router(normalize), (logits,)))
    want, experts = logits.float().softmax(-1).topk(4)
    if normalize:
        want = want / want.sum(-1, keepdim=True)
    for features in FEATURES:
        factors, chosen = pumice.load(data, features=features)(logits)
        assert torch.equal(chosen, experts)
        torch.testing.assert_close(factors, want, atol=1e-6, rtol=1e-5)


def test_equal_logits_and_nan_still_give_different_experts() -> None:
    logits = torch.tensor([[1.0, 1, 1, 1, 1, 1], [-0.0, 0.0, 0.0, -1, -2, -3], [1, 2, float("nan"), 3, 4, 0]])
    factors, chosen = pumice.load(bytes(pumice.export(Router(True), (logits,))))(logits)
    assert chosen.tolist() == [[0, 1, 2, 3], [0, 1, 2, 3], [2, 4, 3, 1]]  # the earlier of equal ones; NaN is largest
    torch.testing.assert_close(factors[0], torch.full((4,), 0.25))
    assert factors[2].isnan().all()


def test_sizes_that_no_kernel_takes_are_refused() -> None:
    class One(nn.Module):
        def __init__(self, rows: int, columns: int, gated: bool) -> None:
            super().__init__()
            self.layer = ExpertLinear(2, "silu", gated, torch.empty(2, rows, columns))

        def forward(self, x: torch.Tensor, chosen: torch.Tensor) -> torch.Tensor:
            return self.layer(x, chosen)

    for rows, columns, gated in ((24, 8, False), (48, 8, True), (16, 12, False)):
        with pytest.raises(pumice.UnsupportedError, match="multiples of 16"):
            pumice.export(One(rows, columns, gated), (torch.randn(3, columns), torch.zeros(3, 1, dtype=torch.int64)))
