# SPDX-License-Identifier: Apache-2.0
"""Quantized layers for tests, and the error budget of a matrix product element by element (ops/linear.cpp)."""

from __future__ import annotations

import torch
from torchao.quantization import IntxWeightOnlyConfig, quantize_
from torchao.quantization.granularity import PerAxis, PerGroup
from torchao.quantization.quant_primitives import MappingType

UNIT = {torch.float32: 2.0**-24, torch.float16: 2.0**-11}


def quantized(module: torch.nn.Module, bits: int, group: int | None, affine: bool = False) -> torch.nn.Module:
    """torchao's weights, unchanged, in every Linear and Embedding; group None: a scale a row; affine: zero points."""
    mapping = MappingType.ASYMMETRIC if affine else MappingType.SYMMETRIC
    config = IntxWeightOnlyConfig(
        weight_dtype=torch.int4 if bits == 4 else torch.int8,
        granularity=PerAxis(0) if group is None else PerGroup(group),
        mapping_type=mapping,
    )
    quantize_(module, config, filter_fn=lambda m, _: isinstance(m, torch.nn.Linear | torch.nn.Embedding))
    return module.eval()


def weight64(weight: torch.Tensor) -> torch.Tensor:
    """The real numbers that a weight stands for: (q - zero) * scale in fp64."""
    if not hasattr(weight, "qdata"):
        return weight.detach().double()
    groups = weight.scale.reshape(weight.qdata.shape[0], -1).shape[1]
    width = weight.qdata.shape[1] // groups
    scale, zero = (
        t.double().reshape(-1, groups).repeat_interleave(width, 1) for t in (weight.scale, weight.zero_point)
    )
    return (weight.qdata.double() - zero) * scale


def check_linear(got: torch.Tensor, x: torch.Tensor, layer: torch.nn.Linear, where: str = "") -> None:
    """|err| <= u |y| + 2^-24 (K + 26) sum|x w|, u of the output's type; layer as torch has it, no activation behind."""
    weight = weight64(layer.weight)
    bias = 0.0 if layer.bias is None else layer.bias.detach().double()
    want = x.double() @ weight.T + bias
    size = x.double().abs() @ weight.abs().T + abs(bias)
    check_product(got, want, size, weight.shape[1], where)


def check_product(got: torch.Tensor, want: torch.Tensor, size: torch.Tensor, k: int, where: str = "") -> None:
    """`size`: sum|a b| for each element."""
    unit = UNIT[got.dtype]
    # 2^-25: half the smallest fp16 denormal, where rounding is absolute.
    allowed = 2 * unit * want.abs() + 2.0**-24 * (k + 26) * size + (2.0**-25 if got.dtype is torch.float16 else 0.0)
    error = (got.double() - want).abs()
    assert got.shape == want.shape, f"{where}: {list(got.shape)}, not {list(want.shape)}"
    assert torch.isfinite(got).all(), f"{where}: not finite"
    worst = (error / allowed.clamp_min(1e-300)).max() if got.numel() else torch.zeros(())
    assert (error <= allowed).all(), f"{where}: an error is {float(worst):.3g} times what is allowed"
