# SPDX-License-Identifier: Apache-2.0
"""Self attention whose queries, keys and values are one product, and where they stay three."""

from __future__ import annotations

import pytest
import torch
from support.unfused import check_pattern
from torch import nn
from torch.nn import functional as F

import pumice

PATTERN = "merged_attention"


class SelfAttention(nn.Module):
    """As transformers writes it; fewer heads of keys and values where `kv_heads` are fewer."""

    def __init__(self, heads: int = 3, kv_heads: int = 3, size: int = 8, columns: int = 32, bias: bool = True) -> None:
        super().__init__()
        self.heads, self.kv_heads, self.size = heads, kv_heads, size
        self.q = nn.Linear(columns, heads * size, bias)
        self.k, self.v = (nn.Linear(columns, kv_heads * size, bias) for _ in range(2))
        self.out = nn.Linear(heads * size, columns)

    def split(self, rows: torch.Tensor) -> torch.Tensor:
        return rows.view(*rows.shape[:2], -1, self.size).transpose(1, 2)

    def inputs(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return self.split(self.q(x)), self.split(self.k(x)), self.split(self.v(x))

    def forward(self, x: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        grouped = self.heads != self.kv_heads
        y = F.scaled_dot_product_attention(*self.inputs(x), attn_mask=mask, enable_gqa=grouped)
        return self.out(y.transpose(1, 2).reshape(*x.shape[:2], -1))


def layer(seed: int = 1, **options) -> SelfAttention:
    torch.manual_seed(seed)
    return SelfAttention(**options).eval()


UNFUSED = {"linear": 4, "sdpa": 1, "view": 4}


@pytest.mark.parametrize("mask", [None, (2, 1, 1, 9), (1, 1, 9, 9)], ids=str)
@pytest.mark.parametrize(
    "options", [{}, {"bias": False}, {"heads": 4, "kv_heads": 2}, {"size": 7}, {"size": 2}], ids=str
)
def test_merged_attention(options, mask) -> None:
    inputs = [torch.randn(2, 9, 32)] + ([] if mask is None else [torch.randn(mask)])
    fused = {"linear": 2, "sdpa_heads": 1, "view": 2}
    check_pattern(layer(**options), *inputs, pattern=PATTERN, fused=fused, unfused=UNFUSED, rtol=5e-6)


class HeadsFirst(SelfAttention):
    """Whose result is not transposed back."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.scaled_dot_product_attention(*self.inputs(x), is_causal=True)


def test_heads_first_and_causal() -> None:
    torch.manual_seed(2)
    fused, unfused = {"linear": 1, "sdpa_heads": 1, "view": 1}, {"linear": 3, "sdpa": 1, "view": 3}
    check_pattern(HeadsFirst().eval(), torch.randn(2, 9, 32), pattern=PATTERN, fused=fused, unfused=unfused, rtol=5e-6)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
def test_the_same_numbers(dtype) -> None:
    """The portable kernels sum each column alike in a product of any number of them."""
    module, x = layer(heads=4, kv_heads=4, size=16).to(dtype), torch.randn(2, 37, 32).to(dtype)
    results = []
    for without in ((), (PATTERN,)):
        program = pumice.export(module, (x,), options={"without_fusion": without})
        results.append(pumice.load(bytes(program))(x))
    assert torch.equal(*results)


@pytest.mark.parametrize(
    ("scheme", "product"),
    [("int4", "linear_q4gsw"), ("8da4w", "linear_dq8ca_q4gsw"), ("int8", "linear_q8csw")],
)
def test_quantized_layers(scheme, product) -> None:
    module, x = layer(), torch.randn(2, 9, 32)
    pumice.quantize(module, scheme, **({"group_size": 8} if "4" in scheme else {}))
    results = []
    for without, count in (((), 2), ((PATTERN,), 4)):
        program = pumice.export(module, (x,), options={"without_fusion": without})
        assert program.report.operators[product] == count, program.report.operators
        results.append(pumice.load(bytes(program))(x))
    assert torch.equal(*results)
    with torch.no_grad():
        torch.testing.assert_close(results[0], module(x), atol=2e-5, rtol=2e-5)


@pytest.mark.parametrize(("most", "is_merged"), [(64, True), (1 << 20, False), (None, False)])
def test_lengths_that_change(most, is_merged) -> None:
    """Only where the merged result is known to fit into a binding of every device."""
    module = layer()
    dims = {0: torch.export.Dim("batch", min=1, max=4), 1: torch.export.Dim("length", min=2, max=most)}
    program = pumice.export(module, (torch.randn(2, 9, 32),), dynamic_shapes={"x": dims})
    assert ("sdpa_heads" in program.report.operators) is is_merged
    session = pumice.load(bytes(program))
    for shape in ((1, 2, 32), (4, 64, 32), (3, 33, 32)):
        x = torch.randn(shape)
        with torch.no_grad():
            torch.testing.assert_close(session(x), module(x), atol=2e-5, rtol=2e-5)


def test_bindings_of_parts() -> None:
    """A batch at a time: the keys of a head reach through its rows of the merged result."""
    module, x = layer(size=16), torch.randn(4, 60, 32)
    program = bytes(pumice.export(module, (x,)))
    assert torch.equal(pumice.load(program, features="max_storage=40960")(x), pumice.load(program)(x))


def test_the_self_test_knows_it(tmp_path) -> None:
    module, x = layer(heads=4, kv_heads=2, size=16), torch.randn(2, 9, 32)
    program, found = bytes(pumice.export(module, (x,))), set()
    for _ in range(10):  # a load tests as long as it has time, and the next one goes on
        session = pumice.load(program, cache_dir=str(tmp_path), features="like_gpu")
        found = {each.result for each in session.device.self_test if "sdpa" in each.kernel}
        if found == {"right"}:
            return
    raise AssertionError(f"attention was not tested, or is wrong: {found}")


class Reads(SelfAttention):
    """Keys that something else reads, too."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        q, k, v = self.inputs(x)
        return F.scaled_dot_product_attention(q, k, v), k + 1


class Other(SelfAttention):
    """Values of another input."""

    def inputs(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return self.split(self.q(x)), self.split(self.k(x)), self.split(self.v(x * 2))


class Twice(SelfAttention):
    """One layer for queries and keys."""

    def inputs(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        q = self.split(self.q(x))
        return q, q, self.split(self.v(x))


@pytest.mark.parametrize("kind", [Reads, Other, Twice])
def test_what_is_not_merged(kind) -> None:
    torch.manual_seed(4)
    module, x = kind().eval(), torch.randn(2, 9, 32)
    program = pumice.export(module, (x,))
    assert "sdpa" in program.report.operators and "sdpa_heads" not in program.report.operators
    with torch.no_grad():
        want = module(x)
    torch.testing.assert_close(pumice.load(bytes(program))(x), want, atol=2e-5, rtol=2e-5)


def test_a_bias_of_some_alone() -> None:
    module, x = layer(), torch.randn(2, 9, 32)
    module.k.bias = None
    program = pumice.export(module, (x,))
    assert program.report.operators["linear"] == 4
    with torch.no_grad():
        torch.testing.assert_close(pumice.load(bytes(program))(x), module(x), atol=2e-5, rtol=2e-5)
