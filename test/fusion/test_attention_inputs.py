# SPDX-License-Identifier: Apache-2.0
"""Queries, keys and values in front of an attention over caches, in one product and one operator and each by itself."""

from __future__ import annotations

import pytest
import torch

import pumice
from pumice.llm import attention  # noqa: F401 (defines the operator)


class Layer(torch.nn.Module):
    """`norm`: of each head, None, "before" the transpose or "after" it; `rotated`: elements of a head."""

    def __init__(self, norm: str | None, rotated: int) -> None:
        super().__init__()
        self.norm, self.rotated = norm, rotated
        self.q, self.k, self.v = (torch.nn.Linear(32, 16 * heads, bias=False) for heads in (4, 2, 2))
        self.q_norm, self.k_norm = (torch.nn.Parameter(torch.rand(16) + 0.5) for _ in range(2))
        for name in ("keys", "values"):
            self.register_buffer(name, torch.randn(1, 2, 12, 16))
        self.register_buffer("cos", torch.randn(12, max(rotated, 2)))
        self.register_buffer("sin", torch.randn(12, max(rotated, 2)))

    def normed(self, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))

    def rope(self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        r = self.rotated
        part = x if r == 16 else x[..., :r]
        half = torch.cat((-part[..., r // 2 :], part[..., : r // 2]), dim=-1)
        part = part * cos.unsqueeze(1) + half * sin.unsqueeze(1)
        return part if r == 16 else torch.cat((part, x[..., r:]), dim=-1)

    def forward(self, x: torch.Tensor, first: torch.Tensor) -> torch.Tensor:
        q, k, v = (layer(x).view(1, 3, -1, 16) for layer in (self.q, self.k, self.v))
        if self.norm == "before":
            q, k = self.normed(q, self.q_norm), self.normed(k, self.k_norm)
        q, k, v = (t.transpose(1, 2) for t in (q, k, v))
        if self.norm == "after":
            q, k = self.normed(q, self.q_norm), self.normed(k, self.k_norm)
        if self.rotated:
            at = first[:, None] + torch.arange(3)
            q, k = (self.rope(t, self.cos[at], self.sin[at]) for t in (q, k))
        out, keys, values = torch.ops.pumice.cached_attention(q, k, v, self.keys, self.values, first, 0.25)
        self.keys.copy_(keys)
        self.values.copy_(values)
        return out.flatten(2)


@pytest.mark.parametrize(("norm", "rotated"), [(None, 0), (None, 16), ("before", 16), ("after", 6)])
def test_attention_inputs(norm, rotated) -> None:
    torch.manual_seed(3)
    module = Layer(norm, rotated).eval()
    inputs = torch.randn(1, 3, 32), torch.tensor([4])
    results = []
    for without in ((), ("attention_inputs",)):
        program = pumice.export(module, inputs, options={"without_fusion": without})
        operators = program.report.operators
        assert operators["cached_attention"] == 1
        assert operators["linear"] == (3 if without else 1)
        alone = {"neg", "rms_norm", "cat"} & set(operators)
        assert bool(alone) == (bool(without) and bool(norm or rotated)), operators
        results.append(pumice.load(bytes(program))(*inputs))
    with torch.no_grad():
        results.append(module(*inputs))
    for other in results[1:]:
        torch.testing.assert_close(results[0], other, atol=2e-5, rtol=2e-5)


def test_layers_of_other_inputs_are_not_merged() -> None:
    torch.manual_seed(3)
    module = Layer(None, 0).eval()
    module.v.forward = lambda x: torch.nn.functional.linear(x + 1, module.v.weight)
    inputs = torch.randn(1, 3, 32), torch.tensor([0])
    program = pumice.export(module, inputs)
    assert program.report.operators["linear"] == 3
    with torch.no_grad():
        torch.testing.assert_close(pumice.load(bytes(program))(*inputs), module(*inputs), atol=2e-5, rtol=2e-5)
