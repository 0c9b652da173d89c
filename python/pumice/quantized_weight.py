# SPDX-License-Identifier: Apache-2.0
"""Constant weights [N, K] behind a dequantize node, in the form the packed operators take (ops/common/gemm.h)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from pumice.dtypes import TORCH
from pumice.ir import DType
from pumice.lower import Ref

if TYPE_CHECKING:
    from pumice.lower import Call
    from pumice.passes.quant import Q


@dataclass(frozen=True)
class QuantizedWeight:
    data: Ref  # i4 or i8 [N, K]
    scale: Ref  # f32 or f16 [N, G]
    zero: Ref | None  # i8 [N, G]; whether it is all zero is proved when the file is loaded
    bits: int
    group: int
    columns: int
    out_dtype: DType


def quantized_weight(call: Call, weight: Ref) -> QuantizedWeight | None:
    """None when no dequantize node is behind `weight`; refuses the schemes that no operator computes."""
    q = call.quantized(weight)
    if q is None:
        return None
    if not q.data.is_constant or q.data.rank != 2 or q.data.dtype is not DType.i8:
        call.refuse(f"a quantized weight must be a constant int8 matrix, got {q.data.dtype.name} of rank {q.data.rank}")
    rows, columns = q.data.shape
    group = _group(call, q, columns)
    if q.qmin < -128 or q.qmax > 127:
        call.refuse(f"weights quantized to {q.qmin}..{q.qmax}; -128..127 is the widest range")
    bits = 4 if q.qmin >= -8 and q.qmax <= 7 else 8
    shape = (rows, columns // group)
    data = q.data
    if bits == 4:
        data = call.constant(f"{data.key}:i4", DType.i4, data.shape, lambda: _int4(call, q.data))
    return QuantizedWeight(data, _scale(call, q, shape), _zero(call, q, shape), bits, group, columns, q.out_dtype)


def _group(call: Call, q: Q, columns: int) -> int:
    if q.kind == "tensor" or (q.kind == "channel" and q.axis == 0):
        return columns
    if q.kind not in ("block", "group") or len(q.block) != 2 or q.block[0] != 1:
        how = f"in blocks of {q.block}" if q.block else f"by {q.kind} (dimension {q.axis})"
        call.refuse(f"weights quantized {how}; whole rows and groups along rows are supported")
    group = q.block[1]
    if columns % group != 0 or (group != columns and group % 4 != 0):
        call.refuse(
            f"weights quantized in groups of {group} of {columns} columns; a divisor that is a multiple of 4 is needed"
        )
    return group


def _int4(call: Call, data: Ref) -> np.ndarray:
    values = call.value(data).detach().cpu().numpy()
    if values.size and (values.min() < -8 or values.max() > 7):
        raise ValueError(f"the int4 weight '{data.key}' holds {values.min()}..{values.max()}, beyond -8..7")
    return values


def _scale(call: Call, q: Q, shape: tuple[int, int]) -> Ref:
    scale = q.scale
    if not isinstance(scale, Ref):
        value = float(scale)
        return call.constant(f"scale {value!r} {shape}", DType.f32, shape, lambda: torch.full(shape, value))
    if not scale.is_constant:
        call.refuse("the scales of the weight are computed, not constant")
    if scale.dtype not in (DType.f32, DType.f16):
        call.refuse(f"the scales of the weight are {scale.dtype.name}; f32 and f16 are supported")
    return _broadcast(call, scale, scale.dtype, shape)


def _zero(call: Call, q: Q, shape: tuple[int, int]) -> Ref | None:
    zero = q.zero
    if zero is None or (not isinstance(zero, Ref) and zero == 0):
        return None
    if not isinstance(zero, Ref):
        value = int(zero)
        if value != zero or not -128 <= value <= 127:
            call.refuse(f"the zero point of the weight is {zero}; integers in -128..127 are supported")
        key = f"zero {value} {shape}"
        return call.constant(key, DType.i8, shape, lambda: torch.full(shape, value, dtype=torch.int8))
    if not zero.is_constant or zero.dtype not in (DType.i8, DType.i32, DType.i64):
        call.refuse(f"the zero points of the weight must be constant integers, got {zero.dtype.name}")
    return _broadcast(call, zero, DType.i8, shape)


def _broadcast(call: Call, ref: Ref, dtype: DType, shape: tuple[int, int]) -> Ref:
    """`ref` as a [rows, groups] constant of `dtype`; per-channel ones come as [N], per-tensor ones with one element."""
    if ref.shape == shape and ref.dtype is dtype:
        return ref

    def data() -> torch.Tensor:
        value = call.value(ref)
        made = value.to(TORCH[dtype])
        if dtype is DType.i8 and not torch.equal(made.to(value.dtype), value):
            low, high = int(value.min()), int(value.max())
            raise ValueError(f"the zero points '{ref.key}' reach {low}..{high}, beyond -128..127")
        return made.reshape(-1, 1).expand(shape) if made.numel() in (1, shape[0]) else made.reshape(shape)

    return call.constant(f"{ref.key}:{dtype.name}{list(shape)}", dtype, shape, data)
