# SPDX-License-Identifier: Apache-2.0
"""Quantized layers for tests, and the error bound of a matrix product element by element."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
import torchao  # noqa: F401 (registers torch.ops.torchao)
from torch.ao.quantization.fx import _decomposed  # noqa: F401 (registers torch.ops.quantized_decomposed)
from torchao.quantization import IntxWeightOnlyConfig, quantize_
from torchao.quantization.granularity import PerAxis, PerGroup
from torchao.quantization.quant_primitives import MappingType

import pumice
from support.sums import Sums, product

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
    """The bound of linear_error (ops/linear/error_bound.h); the layer is torch's, without an activation after it."""
    weight = weight64(layer.weight)
    bias = None if layer.bias is None else layer.bias.detach()
    check_product(got, product(x, weight.T).plus(bias), 26, where)


def check_product(got: torch.Tensor, sums: Sums, fixed: float, where: str = "", **roundings: float) -> None:
    """|err| <= u |y| + sums.error(fixed, **roundings), u of the output's type."""
    unit, want = UNIT[got.dtype], sums.want
    # 2^-25: half the smallest fp16 denormal, where rounding is absolute.
    allowed = unit * want.abs() + sums.error(fixed, **roundings) + (2.0**-25 if got.dtype is torch.float16 else 0.0)
    error = (got.double() - want).abs()
    assert got.shape == want.shape, f"{where}: {list(got.shape)}, not {list(want.shape)}"
    assert torch.isfinite(got).all(), f"{where}: not finite"
    worst = (error / allowed.clamp_min(1e-300)).max() if got.numel() else torch.zeros(())
    assert (error <= allowed).all(), f"{where}: an error is {float(worst):.3g} times what is allowed"


class Apply(torch.nn.Module):
    """A function of tensors; `constants` are buffers that it gets after the inputs."""

    def __init__(self, function: Callable[..., Any], *constants: torch.Tensor) -> None:
        super().__init__()
        self.function, self.count = function, len(constants)
        for index, constant in enumerate(constants):
            self.register_buffer(f"c{index}", constant)

    def forward(self, *inputs: torch.Tensor) -> Any:
        return self.function(*inputs, *(getattr(self, f"c{i}") for i in range(self.count)))


def check_bits(
    module: torch.nn.Module,
    *inputs: torch.Tensor,
    expect_ops: Mapping[str, int],
    runs: Iterable[tuple[torch.Tensor, ...]] = (),
    **options: Any,
) -> pumice.Program:
    """Every result, on the device and with nothing optional, has the bits of eager PyTorch's; NaNs count as one.

    fp64 results are fp32 numbers here and int64 ones 32 bits wide.
    """
    program = pumice.export(module, inputs, **options)
    found = {name: program.report.operators.get(name, 0) for name in expect_ops}
    assert found == dict(expect_ops), f"{found}, not {dict(expect_ops)}"
    for features in (None, "none,like_gpu"):
        session = pumice.load(bytes(program), features=features)
        for case in (inputs, *runs):
            results = zip(_tensors(session(*case)), _tensors(module(*case)), strict=True)
            for index, (got, want) in enumerate(results):
                want = want.to(torch.float32 if want.dtype is torch.float64 else want.dtype)
                want = want.clamp(min=-(2**31)) if want.dtype is torch.int64 else want
                assert (got.shape, got.dtype) == (want.shape, want.dtype), f"result {index}: {got.dtype}{got.shape}"
                wrong = _bits(got) != _bits(want)
                where = wrong.nonzero()[0].tolist() if wrong.any() else []
                assert not wrong.any(), (
                    f"result {index}: {int(wrong.sum())} of {wrong.numel()} differ, first {where}: "
                    f"{got[tuple(where)]!r}, not {want[tuple(where)]!r}"
                )
    return program


def _bits(x: torch.Tensor) -> torch.Tensor:
    if not x.dtype.is_floating_point:
        return x
    x = torch.where(x.isnan(), torch.full_like(x, float("nan")), x)
    return x.contiguous().view(torch.int32 if x.dtype is torch.float32 else torch.int16)


def _tensors(value: Any) -> list[torch.Tensor]:
    return [value] if isinstance(value, torch.Tensor) else [tensor for part in value for tensor in _tensors(part)]


def limits(dtype: torch.dtype) -> tuple[int, int]:
    return torch.iinfo(dtype).min, torch.iinfo(dtype).max


def all_halves() -> torch.Tensor:
    return torch.arange(-(2**15), 2**15).to(torch.int16).view(torch.float16)
