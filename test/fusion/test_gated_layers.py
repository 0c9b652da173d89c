# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
import torch
from support.unfused import check_pattern
from torch import nn

import pumice

ACTIVATIONS = {
    "silu": nn.functional.silu,
    "gelu": nn.functional.gelu,
    "gelu_tanh": lambda x: nn.functional.gelu(x, approximate="tanh"),
    "relu": torch.relu,
}


class Gated(nn.Module):
    """The feed-forward block of a decoder: a norm, then act(gate(x)) * up(x)."""

    def __init__(self, act: str, width: int = 64, inner: int = 48, bias: bool = False, norm: bool = True) -> None:
        super().__init__()
        self.act, self.norm = ACTIVATIONS[act], norm
        self.weight = nn.Parameter(1 + 0.1 * torch.randn(width))
        self.gate, self.up = (nn.Linear(width, inner, bias=bias) for _ in range(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.norm:
            x = self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))
        return self.act(self.gate(x)) * self.up(x)


@pytest.mark.parametrize("rows", [1, 3, 40])
@pytest.mark.parametrize(("act", "scheme"), [("silu", "int4"), ("gelu_tanh", None), ("relu", "int8")])
def test_gated_layers(act, scheme, rows) -> None:
    torch.manual_seed(0)
    module = Gated(act, bias=scheme is None)
    if scheme:
        pumice.quantize(module, scheme, **({"group_size": 32} if scheme == "int4" else {}))
    op = {None: "linear", "int4": "linear_q4gsw", "int8": "linear_q8csw"}[scheme]
    ops = {"fused": {"fused_linear": 1}, "unfused": {op: 2, "rms_norm": 1, "mul": 1}}
    check_pattern(module, torch.randn(rows, 64), pattern="gated_layers", rtol=2e-5, **ops)


def test_a_gate_without_norm() -> None:
    torch.manual_seed(0)
    module = Gated("gelu", norm=False)
    ops = {"fused": {"fused_linear": 1}, "unfused": {"linear": 2, "mul": 1}}
    check_pattern(module, torch.randn(2, 3, 64), pattern="gated_layers", rtol=2e-5, **ops)


@pytest.mark.parametrize("layer", [Gated("silu", inner=40), Gated("silu", width=60)], ids=["rows", "columns"])
def test_sizes_that_the_operator_does_not_take_stay(layer) -> None:
    torch.manual_seed(0)
    x = torch.randn(2, layer.weight.numel())
    ops = {"linear": 2, "rms_norm": 1, "mul": 1}
    check_pattern(layer, x, pattern="gated_layers", rtol=2e-5, fused=ops, unfused=ops)


def test_integers_of_x_keep_their_layers() -> None:
    torch.manual_seed(0)
    module = Gated("silu")
    pumice.quantize(module, "8da4w", group_size=32)
    ops = {"linear_dq8ca_q4gsw": 2, "rms_norm": 1, "mul": 1}
    check_pattern(module, torch.randn(2, 64), pattern="gated_layers", rtol=2e-5, fused=ops, unfused=ops)


def test_sums_that_are_read_elsewhere_stay() -> None:
    torch.manual_seed(0)
    module = Gated("silu", norm=False)
    module.forward = lambda x: (module.act(module.gate(x)) * module.up(x), module.up(x))
    ops = {"linear": 2, "mul": 1}
    check_pattern(module, torch.randn(2, 64), pattern="gated_layers", rtol=2e-5, fused=ops, unfused=ops)
