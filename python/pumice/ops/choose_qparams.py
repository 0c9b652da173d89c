# SPDX-License-Identifier: Apache-2.0
"""Scales and zero points of live tensors: torchao.choose_qparams_affine, quantized_decomposed.choose_qparams*."""

from __future__ import annotations

import torch

from pumice.lowering import qparams
from pumice.lowering.call import Call
from pumice.lowering.qparams import MAPPINGS, STEPS_F16, STEPS_F32, WHOLE
from pumice.lowering.registry import lowers
from pumice.lowering.sizes import same_shape


def _emit(call: Call, block: list[int], mapping: int, low: int, high: int, eps: float, steps: int) -> None:
    x, outs = call.tensor("input"), call.outs
    grid = [1 if part == WHOLE else size // part for part, size in zip(block, x.shape, strict=True)]
    written = [ref if same_shape(ref.shape, grid) else call.temp(ref.dtype, grid) for ref in outs]
    call.emit("choose_qparams", x, block, mapping, low, high, eps, steps, out=written)
    for ref, out in zip(written, outs, strict=True):
        if ref is not out:
            call.emit("view", ref, list(out.shape), out=out)


@lowers("torchao.choose_qparams_affine.default")
def affine(call: Call) -> None:
    """torchao's: a scale and a zero point for each block."""
    x = call.tensor("input")
    steps = STEPS_F16 if x.torch_dtype is torch.float16 else STEPS_F32
    block = qparams.blocks(call, x, call["block_size"])
    mapping = MAPPINGS[call["mapping_type"]]
    _emit(call, block, mapping, *qparams.limits(call, "target_dtype"), qparams.least_scale(call, x), steps)


@lowers("quantized_decomposed.choose_qparams.tensor", "quantized_decomposed.choose_qparams_symmetric.tensor")
def tensor(call: Call) -> None:
    """One scale and zero point for all."""
    x, low, high = call.tensor("input"), call["quant_min"], call["quant_max"]
    symmetric = "symmetric" in str(call.target)
    if symmetric and qparams.symmetric_zero(low, high) != (128 if call["dtype"] is torch.uint8 else 0):
        call.refuse(f"symmetric quantization to {low}..{high}, where PyTorch does not put zero in the middle")
    steps = qparams.STEPS_F16_THEN_F32 if x.torch_dtype is torch.float16 else STEPS_F32
    mapping = MAPPINGS["SYMMETRIC"] if symmetric else qparams.TENSOR
    _emit(call, [WHOLE] * x.rank, mapping, low, high, call["eps"], steps)


@lowers(
    "quantized_decomposed.choose_qparams_per_token.default",
    "quantized_decomposed.choose_qparams_per_token_asymmetric.default",
    "quantized_decomposed._choose_qparams_per_token_asymmetric_impl.default",
)
def per_token(call: Call) -> None:
    """A scale and a zero point for each row."""
    x = call.tensor("input")
    block = [1] * (x.rank - 1) + [WHOLE]
    if "asymmetric" in str(call.target):
        steps = STEPS_F16 if x.torch_dtype is torch.float16 else STEPS_F32
        _emit(call, block, qparams.NEAREST_END, -128, 127, torch.finfo(torch.float32).eps, steps)
    elif call["dtype"] is not torch.int8:
        call.refuse(f"a scale for each token of {call['dtype']}; PyTorch has them for int8 only")
    else:
        _emit(call, block, qparams.ABSOLUTE, -127, 127, 1e-5, STEPS_F32)
