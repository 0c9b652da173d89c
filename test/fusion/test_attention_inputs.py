# SPDX-License-Identifier: Apache-2.0
"""Queries, keys and values in front of an attention over caches, in one product and one operator and each by itself."""

from __future__ import annotations

import pytest
import torch
from support.cached_attention import CachedAttention

import pumice


def layer(norm: str | None, rotated: int) -> CachedAttention:
    torch.manual_seed(3)
    return CachedAttention(heads=4, kv_heads=2, size=16, capacity=12, rotated=rotated, norm=norm).eval()


@pytest.mark.parametrize(("norm", "rotated"), [(None, 0), (None, 16), ("before", 16), ("after", 6)])
def test_attention_inputs(norm, rotated) -> None:
    module = layer(norm, rotated)
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


@pytest.mark.parametrize(("scheme", "product"), [("int4", "linear_q4gsw"), ("8da4w", "linear_dq8ca_q4gsw")])
def test_quantized_layers_are_one_product(scheme, product) -> None:
    module = layer(None, 16)
    pumice.quantize(module, scheme, group_size=32)
    inputs = torch.randn(1, 3, 32), torch.tensor([4])
    program = pumice.export(module, inputs)
    # Beside it, the views of its input and its result.
    assert set(program.report.operators) == {"cached_attention", product, "view"}, program.report.operators
    assert program.report.operators[product] == 1
    with torch.no_grad():
        torch.testing.assert_close(pumice.load(bytes(program))(*inputs), module(*inputs), atol=2e-5, rtol=2e-5)


def test_layers_of_other_inputs_are_not_merged() -> None:
    module = layer(None, 0)
    module.v.forward = lambda x: torch.nn.functional.linear(x + 1, module.v.weight)
    inputs = torch.randn(1, 3, 32), torch.tensor([0])
    program = pumice.export(module, inputs)
    assert program.report.operators["linear"] == 3
    with torch.no_grad():
        torch.testing.assert_close(pumice.load(bytes(program))(*inputs), module(*inputs), atol=2e-5, rtol=2e-5)
