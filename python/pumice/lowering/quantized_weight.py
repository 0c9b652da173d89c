# SPDX-License-Identifier: Apache-2.0
"""Constant integer matrices [N, K] with their scales and zero points, in the form the packed operators take
(ops/linear/packed_weight.h), from whatever form a producer writes them in."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from pumice.format.ir import DType
from pumice.lowering.call import Call
from pumice.lowering.quantized import QuantizedTensor, quantized
from pumice.lowering.ref import Ref

BYTES = (DType.i8, DType.u8)


@dataclass(frozen=True)
class Matrix:
    """As it was written: real = (values - zero) * scale. `values` and the tensors are read when the file is written."""

    key: str
    rows: int
    columns: int
    values: Callable[[], torch.Tensor]  # integers [rows, columns]
    low: int  # the range of values
    high: int
    group: int  # columns that share a scale
    scale: Ref | float
    zero: Ref | float | int | None
    out_dtype: DType
    transposed: bool = False  # scales and zero points are [groups, rows]
    wraps: DType | None = None  # PyTorch subtracts the zero points in this dtype


@dataclass(frozen=True)
class QuantizedWeight:
    """The constants of a weight [N, K] with G groups in a row; `out_dtype`: what it is dequantized to."""

    data: Ref  # i4 or i8 [N, K]
    scale: Ref  # f32 or f16 [N, G]
    zero: Ref | None  # i8 [N, G]; the load looks whether all are zero
    bits: int
    group: int
    columns: int
    out_dtype: DType


def quantized_weight(call: Call, weight: Ref, least_bits: int = 4) -> QuantizedWeight | None:
    """The weight of a layer, or None when it is not dequantized; refuses the schemes that no operator computes."""
    q = quantized(call, weight)
    return None if q is None else pack(call, _nibbles(call, q) if q.kind == "nibbles" else _matrix(call, q), least_bits)


def whole_rows(call: Call, weight: Ref) -> bool:
    """Whether a dequantized matrix has one scale for each row, or one for all."""
    q = quantized(call, weight)
    if q is None or q.kind == "nibbles" or q.data.rank != 2:
        return False
    return q.kind == "tensor" or (q.kind == "channel" and q.axis == 0) or (q.block or [0])[-1] == q.data.shape[-1]


def unpacked(call: Call, data: Ref, bits: int, high_first: bool) -> Callable[[], torch.Tensor]:
    """Reads unsigned integers of `bits` bits packed along rows of bytes, the first in the low bits or the high ones."""

    def read() -> torch.Tensor:
        shifts = range(0, 8, bits)
        parts = [(call.value(data) >> shift) & (2**bits - 1) for shift in (reversed(shifts) if high_first else shifts)]
        return torch.stack(parts, -1).flatten(1)

    return read


def pack(call: Call, m: Matrix, least_bits: int = 4) -> QuantizedWeight:
    """The constants of `m`; unsigned integers are shifted into the signed range, and their zero points with them."""
    bits, shift = _storage(m, least_bits)
    group = _group(call, m)
    dtype = DType.i4 if bits == 4 else DType.i8

    def data() -> torch.Tensor:
        values = m.values()
        low, high = (int(values.min()), int(values.max())) if values.numel() else (m.low, m.high)
        if low < m.low or high > m.high:
            raise ValueError(f"the weight '{m.key}' of integers {m.low}..{m.high} holds {low}..{high}")
        return (values.to(torch.int16) - shift).to(torch.int8)

    stored = call.constant(f"{_layer_name(m.key)}:{dtype.name}", dtype, (m.rows, m.columns), data)
    shape = (m.rows, m.columns // group)
    return QuantizedWeight(
        stored, _scale(call, m, shape), _zero(call, m, shape, shift), bits, group, m.columns, m.out_dtype
    )


def _layer_name(key: str) -> str:
    """torch takes a weight of torchao apart: up.parametrizations.weight.original0 and _1 are parts of up.weight."""
    return re.sub(r"\.parametrizations\.(\w+)\.original\d$", r".\1", key)


def _by(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape))


def _matrix(call: Call, q: QuantizedTensor) -> Matrix:
    if not q.data.is_constant or q.data.rank != 2 or q.data.dtype not in BYTES:
        call.refuse(f"a quantized weight must be a constant matrix of bytes, got {q.data.dtype.name} {q.data.shape}")
    rows, columns = q.data.shape
    if q.kind == "tensor" or (q.kind == "channel" and q.axis == 0):
        group = columns
    elif q.kind in ("block", "group") and len(q.block) == 2 and q.block[0] == 1:
        group = q.block[1]
    else:
        granularity = (
            f"in blocks of {q.block}" if q.block else f"by {q.kind}" + ("" if q.axis is None else f" of axis {q.axis}")
        )
        call.refuse(f"weights quantized {granularity}; supported: a scale for each row, or for each group along a row")
    if q.qmin < -128 or q.qmax > 255:
        call.refuse(f"weights quantized to {q.qmin}..{q.qmax}; 8 bits are the most")
    wraps = q.data.dtype if q.kind in ("channel", "group") and q.zero_dtype is q.data.dtype else None
    values = lambda: call.value(q.data)  # noqa: E731
    limits = (-128, 127) if q.data.dtype is DType.i8 else (0, 255)
    low, high = max(q.qmin, limits[0]), min(q.qmax, limits[1])
    return Matrix(q.data.key, rows, columns, values, low, high, group, q.scale, q.zero, q.out_dtype, wraps=wraps)


def _nibbles(call: Call, q: QuantizedTensor) -> Matrix:
    """ExecuTorch's ExportableInt4Tensor: the even column in the low nibble, integers 0..15."""
    if not q.data.is_constant:
        call.refuse("a packed int4 weight must be a constant")
    rows, columns = q.data.shape[0], 2 * q.data.shape[1]
    values = unpacked(call, q.data, 4, high_first=False)
    return Matrix(q.data.key, rows, columns, values, 0, 15, q.block[1], q.scale, q.zero, q.out_dtype, transposed=True)


def _storage(m: Matrix, least_bits: int) -> tuple[int, int]:
    """Bits, and what is subtracted from values and zero points; 8 bits hold what bytes hold."""
    choices = (
        (bits, shift)
        for bits in (4, 8)
        for shift in (0, 1 << (bits - 1))
        if bits >= least_bits and m.low - shift >= -(1 << (bits - 1)) and m.high - shift < 1 << (bits - 1)
    )
    return next(choices)


def _group(call: Call, m: Matrix) -> int:
    if m.group < 1 or m.columns % m.group != 0 or (m.group != m.columns and m.group % 4 != 0):
        fitting = [g for g in range(4, m.columns, 4) if m.columns % g == 0] + [m.columns]
        nearest = min(fitting, key=lambda g: abs(g - m.group))
        call.refuse(
            f"weights quantized in groups of {m.group} of {m.columns} columns; a divisor that is a multiple of 4, or "
            f"the whole row, is needed: the nearest is {nearest}"
        )
    return m.group


def _scale(call: Call, m: Matrix, shape: tuple[int, int]) -> Ref:
    if not isinstance(m.scale, Ref):
        value = float(m.scale)
        return call.constant(
            f"scale {value!r} {_by(shape)}",
            DType.f32,
            shape,
            lambda: _checked(torch.full(shape, value, dtype=torch.float32), m),
        )
    if not m.scale.is_constant:
        call.refuse("the scales of the weight are computed, not constant")
    if m.scale.dtype not in (DType.f32, DType.f16):
        call.refuse(f"the scales of the weight are {m.scale.dtype.name}; f32, f16 and bf16 are supported")
    # fp16 lacks the range of bf16: its scales stay exact in fp32.
    dtype = DType.f16 if m.scale.torch_dtype is torch.float16 else DType.f32
    key = f"{_layer_name(m.scale.key)}:scale {_by(shape)}"
    return call.constant(key, dtype, shape, lambda: _checked(_spread(call.value(m.scale), m, shape), m))


def _checked(scale: torch.Tensor, m: Matrix) -> torch.Tensor:
    bad = ~((scale >= 0) & torch.isfinite(scale))
    if bad.any():
        place = bad.nonzero()[0].tolist()
        raise ValueError(f"the scale {place} of the weight '{m.key}' is {float(scale[tuple(place)])}")
    return scale


def _zero(call: Call, m: Matrix, shape: tuple[int, int], shift: int) -> Ref | None:
    zero: Any = 0 if m.zero is None else m.zero
    if not isinstance(zero, Ref):
        if zero == shift:
            return None
        key = f"zero {zero} - {shift} {_by(shape)}"
        return call.constant(
            key, DType.i8, shape, lambda: _points(torch.full(shape, float(zero), dtype=torch.float32), m, shift)
        )
    if not zero.is_constant:
        call.refuse("the zero points of the weight are computed, not constant")
    key = f"{_layer_name(zero.key)}:zero {_by(shape)}" + (f" - {shift}" if shift else "")
    return call.constant(key, DType.i8, shape, lambda: _points(_spread(call.value(zero), m, shape), m, shift))


def _points(zero: torch.Tensor, m: Matrix, shift: int) -> torch.Tensor:
    """Zero points as int8, if they are whole numbers that int8 holds and PyTorch's own subtraction does not wrap."""
    zero = zero.double()
    low, high = (float(zero.min()), float(zero.max())) if zero.numel() else (0.0, 0.0)
    if not torch.equal(zero, zero.round()) or low - shift < -128 or high - shift > 127:
        raise ValueError(
            f"the zero points of the weight '{m.key}' reach {low:g}..{high:g}; whole numbers in "
            f"{shift - 128}..{shift + 127} are supported"
        )
    if m.wraps is not None:
        least, most = (-128, 127) if m.wraps is DType.i8 else (0, 255)
        values = m.values().double().unflatten(1, (zero.shape[1], -1)) - zero[..., None]
        if values.numel() and (values.min() < least or values.max() > most):
            raise ValueError(f"the weight '{m.key}' and its {m.wraps.name} zero points differ by more than 8 bits hold")
    return (zero - shift).to(torch.int8)


def _spread(value: torch.Tensor, m: Matrix, shape: tuple[int, int]) -> torch.Tensor:
    """Parameters as [rows, groups]; per-channel ones come as [N], per-tensor ones with one element."""
    if value.numel() == 1:
        return value.reshape(1, 1).expand(shape)
    return value.t() if m.transposed else value.reshape(shape)
