# SPDX-License-Identifier: Apache-2.0
"""torch's dtypes and ours."""

from __future__ import annotations

import torch

from pumice.format.ir import DType

TORCH = {
    DType.f32: torch.float32,
    DType.f16: torch.float16,
    DType.i32: torch.int32,
    DType.i64: torch.int64,
    DType.bool: torch.bool,
    DType.u8: torch.uint8,
    DType.i8: torch.int8,
    DType.i4: torch.int8,
}
_PUMICE = {dtype: ours for ours, dtype in TORCH.items() if ours is not DType.i4}


def device_dtype(dtype: torch.dtype, bf16: str = "f32", float64: str = "refused") -> DType | None:
    """What tensors of `dtype` are on the device, those of bfloat16 "f32" or "f16", those of float64 "refused" or
    "as_float32"; None when there is no such thing."""
    if dtype is torch.bfloat16:
        return DType[bf16]
    if dtype is torch.float64 and float64 == "as_float32":
        return DType.f32
    return _PUMICE.get(dtype)
