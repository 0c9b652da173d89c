# SPDX-License-Identifier: Apache-2.0
"""Floats to integers by a scale and a zero point: torchao.quantize_affine, quantized_decomposed.quantize_per_*."""

from __future__ import annotations

from typing import Any

import torch

from pumice.format.ir import DType
from pumice.lowering.call import Call
from pumice.lowering.operands import FLOATS, axis
from pumice.lowering.qparams import STEPS_F16, STEPS_F32, STEPS_F64, WHOLE, blocks, limits
from pumice.lowering.registry import lowers


def _emit(call: Call, scale: Any, zero: Any, block: list[int], dtype: str, steps: int, last: bool) -> None:
    x = call.tensor("input")
    if x.dtype not in FLOATS:
        call.refuse(f"quantizing {x.dtype.name} tensors; f32 and f16 (and bf16 as one of them) are supported")
    call.emit("quantize", x, scale, zero, block, *limits(call, dtype), steps, last)


@lowers("torchao.quantize_affine.default")
def affine(call: Call) -> None:
    x, scale, zero = call.tensor("input"), call.tensor("scale"), call["zero_point"]
    if zero is None:
        call.refuse("quantization without zero points")  # PyTorch's own operator fails on it
    steps = STEPS_F16 if x.dtype is scale.dtype is DType.f16 else STEPS_F32
    _emit(call, scale, zero, blocks(call, x, call["block_size"]), "output_dtype", steps, False)


@lowers("quantized_decomposed.quantize_per_tensor.default", "quantized_decomposed.quantize_per_tensor.tensor")
def per_tensor(call: Call) -> None:
    block = [WHOLE] * call.tensor("input").rank
    _emit(call, call["scale"], call["zero_point"], block, "dtype", STEPS_F32, False)


@lowers("quantized_decomposed.quantize_per_channel.default")
def per_channel(call: Call) -> None:
    rank = call.tensor("input").rank
    block = [WHOLE] * rank
    block[axis(call["axis"], rank)] = 1
    _emit(call, call.tensor("scales"), call.tensor("zero_points"), block, "dtype", STEPS_F32, False)


def _rounded_last(call: Call, block: list[int]) -> None:
    """In the dtype that x and the scales promote to, be it fp64."""
    x, scale = call.tensor("input"), call.tensor("scales")
    steps = STEPS_F16 if x.dtype is scale.dtype is DType.f16 else STEPS_F32
    # choose_qparams_per_token says fp64, too, but makes fp32.
    single = call.producer(scale, "quantized_decomposed.choose_qparams_per_token.default")
    if scale.torch_dtype is torch.float64 and single is None:
        steps = STEPS_F64
    _emit(call, scale, call.tensor("zero_points"), block, "dtype", steps, True)


@lowers("quantized_decomposed.quantize_per_token.default")
def per_token(call: Call) -> None:
    _rounded_last(call, [1] * (call.tensor("input").rank - 1) + [WHOLE])


@lowers("quantized_decomposed.quantize_per_channel_group.default")
def per_channel_group(call: Call) -> None:
    x, group = call.tensor("input"), call["group_size"]
    if group > x.shape[-1] and call.tensor("scales").shape[-1] == 1:
        group = x.shape[-1]
    _rounded_last(call, [1, group])
