# SPDX-License-Identifier: Apache-2.0
"""Arguments of quantize, dequantize and choose_qparams nodes as the operators take them."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
from torch._subclasses.fake_tensor import unset_fake_temporarily

from pumice.format.dtypes import TORCH
from pumice.lowering.call import Call
from pumice.lowering.ref import Ref
from pumice.lowering.sizes import same

# STEPS_* and QPARAMS_* of glsl/include/core/modes.glslh
STEPS_F32, STEPS_F16, STEPS_F16_THEN_F32, STEPS_F64 = 0, 1, 2, 3
MAPPINGS = {"ASYMMETRIC": 0, "SYMMETRIC": 1, "SYMMETRIC_NO_CLIPPING_ERR": 2}
ABSOLUTE, NEAREST_END, TENSOR = 3, 4, 5
WHOLE = -1  # as a block size: all of a dimension, also where its size is dynamic


def blocks(call: Call, x: Ref, block: list[Any]) -> list[int]:
    """Block sizes with WHOLE for those that are a symbolic size."""
    if len(block) != x.rank:
        call.refuse(f"{len(block)} block sizes for a tensor of rank {x.rank}")
    symbolic = [isinstance(part, torch.SymInt) and same(part, size) for part, size in zip(block, x.shape, strict=True)]
    sizes = [WHOLE if whole else part for whole, part in zip(symbolic, block, strict=True)]
    if any(isinstance(size, torch.SymInt) for size in sizes):
        call.refuse(f"blocks of {block} change from call to call")
    return sizes


def limits(call: Call, dtype: str) -> tuple[int, int]:
    """quant_min, quant_max; absent ones are the range of the integer type in the argument `dtype`."""
    low, high = call["quant_min"], call["quant_max"]
    try:
        info = torch.iinfo(call[dtype])
    except TypeError:
        call.refuse(f"quantization to {call[dtype]}; 8- and 32-bit integers are supported")
    return (info.min if low is None else int(low)), (info.max if high is None else int(high))


def symmetric_zero(low: int, high: int) -> int:
    """Where torchao puts zero when the mapping is symmetric."""
    return int((low + high + 1) / 2)


@cache
def _default_eps(dtype: torch.dtype) -> float:
    """That of the torchao that is installed, as eager computes with it: in 0.17 the dtype's eps, in 0.18 its smallest
    normal number. The scale of zeros is that number."""
    import torchao.quantization.quant_primitives  # noqa: F401 (registers the operator)

    with unset_fake_temporarily():
        zeros = torch.zeros(1, 1, dtype=dtype)
        scale, _ = torch.ops.torchao.choose_qparams_affine(zeros, "SYMMETRIC", [1, 1], torch.int8)
        return scale.item()


def least_scale(call: Call, x: Ref) -> float:
    """`eps` of torchao.choose_qparams_affine; without one, torchao's own for x's dtype."""
    given = call["eps"]
    least = _default_eps(x.torch_dtype or TORCH[x.dtype]) if given is None else float(given)
    # A bf16 tensor kept as f16 has the smaller range of f16.
    return max(least, torch.finfo(TORCH[x.dtype]).smallest_normal) if x.torch_dtype is torch.bfloat16 else least
