# SPDX-License-Identifier: Apache-2.0
"""Integers to floats where no operator takes them as they are; see lowering/quantized.py for the forms."""

from __future__ import annotations

import torch

from pumice.format.ir import DType
from pumice.lowering.call import Call
from pumice.lowering.qparams import STEPS_F16, STEPS_F32, WHOLE, blocks
from pumice.lowering.quantized import QuantizedTensor, view
from pumice.lowering.quantized_names import DEQUANTIZE
from pumice.lowering.registry import lowers

_BYTES = (DType.i8, DType.u8)


@lowers(*DEQUANTIZE)
def dequantize(call: Call) -> None:
    """(data - zero) * scale in f32 or f16."""
    q = view(call)
    zero = q.zero_dtype
    # torchao subtracts in the dtype of the result, the others before that, in whole numbers if both are.
    early = q.kind in ("channel", "group", "token")
    integers = early and zero not in (DType.f32, DType.f16)
    if early and zero is q.data.dtype and zero in _BYTES:
        call.refuse(f"zero points of {zero.name}: PyTorch subtracts them in 8 bits, where the difference wraps")
    if q.kind == "token" and q.data.dtype not in _BYTES:
        call.refuse(f"{q.data.dtype.name} tensors with a scale for each token; 8-bit ones are supported")
    if early and not integers and DType.f16 in (zero, q.scale_dtype):
        call.refuse("floating zero points with fp16; fp32 ones with fp32 scales are supported")
    rounded = q.scale_dtype if early else q.out_dtype
    steps = STEPS_F16 if rounded is DType.f16 and q.out_torch_dtype is not torch.bfloat16 else STEPS_F32
    call.emit("dequantize", q.data, q.scale, q.zero, _block(call, q), steps, integers)


def _block(call: Call, q: QuantizedTensor) -> list[int]:
    if q.block is not None:
        return blocks(call, q.data, q.block)
    rank = q.data.rank
    if q.kind == "token":
        return [1] * (rank - 1) + [WHOLE]
    return [1 if dim == q.axis else WHOLE for dim in range(rank)]
