# SPDX-License-Identifier: Apache-2.0
"""Activations that are quantized and then dequantized in front of a layer: where their integers, scales and zero points
come from, so that the layer's operator computes with the integers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from pumice.format.ir import DType
from pumice.lowering.call import Call
from pumice.lowering.qparams import MAPPINGS, least_scale, limits, symmetric_zero
from pumice.lowering.quantized import QuantizedTensor, quantized
from pumice.lowering.quantized_names import (
    CHOOSE_AFFINE,
    CHOOSE_TENSOR,
    QUANTIZE_AFFINE,
    QUANTIZE_NUMBERS,
    QUANTIZE_TENSOR,
)
from pumice.lowering.ref import Ref
from pumice.lowering.registry import Refused
from pumice.lowering.sizes import same, same_shape

aten = torch.ops.aten
VIEWS = (
    aten.view.default,
    aten._unsafe_view.default,
    aten.reshape.default,
    aten.unsqueeze.default,
    aten.squeeze.dim,
    aten.squeeze.dims,
    aten.flatten.using_ints,
)


@dataclass(frozen=True)
class Chosen:
    """Parameters from the live tensor `x`. per_token 1: for each row, in x's dtype (torchao); 0: for all of it, in fp32
    (PT2E); 2: for each row, fp32 from the scale on (torchao's scale_dtype)."""

    x: Ref
    mapping: int
    low: int
    high: int
    eps: float
    per_token: int


@dataclass(frozen=True)
class Fixed:
    """A scale and a zero point known at export. `made`: the quantize node, whose result is `data`."""

    x: Ref
    data: Ref
    made: Call
    scale: float
    zero: int
    low: int
    high: int


def before_views(call: Call, ref: Ref, rows: bool = True, single_use: bool = False) -> Ref:
    """The same elements in the same order before views changed their shape; `rows`: but not the last dimension."""
    while (before := call.producer(ref, *VIEWS, single_use=single_use)) is not None:
        inner = before.tensor("self")
        if rows and not (inner.rank and ref.rank and same(inner.shape[-1], ref.shape[-1])):
            break
        ref = inner
    return ref


def quantized_activation(call: Call, x: Ref) -> Chosen | Fixed | None:
    """How `x` was quantized before it was dequantized; None when it was not, or not as operators do it."""
    q = quantized(call, before_views(call, x))
    if q is None or q.data.is_constant or q.data.dtype not in (DType.i8, DType.u8) or q.kind == "nibbles":
        return None
    quantize = call.producer(q.data, QUANTIZE_AFFINE, QUANTIZE_TENSOR, QUANTIZE_NUMBERS)
    if quantize is None or not _same_parameters(quantize, q) or quantize.tensor("input").dtype is not q.out_dtype:
        return None
    target = str(quantize.target)
    if target == QUANTIZE_AFFINE:
        whole = q.kind == "block" and _is_row(q.block, q.data) and _range(quantize, "output_dtype", q) is not None
        return chosen_tokens(quantize) if whole else None
    return _numbers(quantize, q) if target == QUANTIZE_NUMBERS else _tensor(quantize, q)


def given_rows(call: Call, x: Ref) -> QuantizedTensor | None:
    """The integers of `x` if it is dequantized with a scale and a zero point for each row, as tensors."""
    q = quantized(call, x)
    if q is None or q.data.is_constant or q.data.dtype is not DType.i8 or not isinstance(q.zero, Ref):
        return None
    # quantized_decomposed subtracts int8 zero points in 8 bits, where the difference may wrap.
    whole = (q.kind == "token" and q.zero.dtype is not q.data.dtype) or (q.kind == "block" and _is_row(q.block, q.data))
    return q if whole and isinstance(q.scale, Ref) else None


def per_tensor(call: Call, x: Ref) -> QuantizedTensor | None:
    """The integers of `x` if it is dequantized from 8-bit ones with a scale and a zero point that are numbers."""
    q = quantized(call, x)
    if q is None or q.kind != "tensor" or q.data.is_constant or not is_number_pair(q.scale, q.zero, q.data):
        return None
    return q if q.out_dtype is x.dtype else None


def is_row(call: Call, x: Ref) -> bool:
    """Whether torchao's block_size of `call` is a row of `x`."""
    return _is_row(list(call["block_size"]), x)


def _is_row(block: list[Any], x: Ref) -> bool:
    """The last dimension is whole, the others are single."""
    return len(block) == x.rank >= 1 and same_shape(block, [*[1] * (x.rank - 1), x.shape[-1]])


def _same(a: Any, b: Any) -> bool:
    return a.is_same(b) if isinstance(a, Ref) else not isinstance(b, Ref) and a == b


def _same_parameters(quantize: Call, q: QuantizedTensor) -> bool:
    return _same(quantize["scale"], q.scale) and _same(quantize["zero_point"], q.zero)


def _limits(call: Call, dtype: str) -> tuple[int, int] | None:
    try:
        low, high = limits(call, dtype)
    except Refused:
        return None
    return (low, high) if low < high else None


def _range(quantize: Call, dtype: str, q: QuantizedTensor) -> tuple[int, int] | None:
    """The limits of `quantize`, if they are those of the dequantize node."""
    between = _limits(quantize, dtype)
    return between if between == (q.qmin, q.qmax) else None


def chosen_tokens(quantize: Call) -> Chosen | None:
    """Of torchao's quantize node: its parameters, if they were chosen from each row of what it quantizes."""
    x, scale, chosen = quantize.tensor("input"), quantize.tensor("scale"), _chooser(quantize, CHOOSE_AFFINE)
    if chosen is None or not (_same(chosen["input"], x) and is_row(quantize, x) and is_row(chosen, x)):
        return None
    between = _limits(quantize, "output_dtype")
    if between is None or between != _limits(chosen, "target_dtype"):
        return None
    mapping, eps = MAPPINGS[chosen["mapping_type"]], least_scale(chosen, x)
    if scale.dtype is x.dtype:
        return Chosen(x, mapping, *between, eps, 1)
    # fp16 with fp32 scales: the same numbers as with fp32 from the scale on, as long as the zero point is fixed.
    if x.dtype is DType.f16 and mapping == MAPPINGS["SYMMETRIC"]:
        return Chosen(x, mapping, *between, float(torch.tensor(eps, dtype=torch.float16)), 2)
    return None


def _tensor(quantize: Call, q: QuantizedTensor) -> Chosen | None:
    x, between = quantize.tensor("input"), _range(quantize, "dtype", q)
    chosen = _chooser(quantize, *CHOOSE_TENSOR)
    if between is None or chosen is None or not _same(chosen["input"], x):
        return None
    if (chosen["quant_min"], chosen["quant_max"]) != between:
        return None
    symmetric = "symmetric" in str(chosen.target)
    if symmetric and symmetric_zero(*between) != (128 if q.data.dtype is DType.u8 else 0):
        return None
    mapping = MAPPINGS["SYMMETRIC" if symmetric else "ASYMMETRIC"]
    return Chosen(x, mapping, *between, float(chosen["eps"]), 0)


def _chooser(quantize: Call, *targets: str) -> Call | None:
    """The node that made both the scale and the zero point."""
    scale, zero = quantize["scale"], quantize["zero_point"]
    if not isinstance(scale, Ref) or not isinstance(zero, Ref):
        return None
    a, b = quantize.producer(scale, *targets), quantize.producer(zero, *targets)
    return a if a is not None and b is not None and a.node is b.node else None


def is_number_pair(scale: Any, zero: Any, integers: Ref) -> bool:
    """Numbers that the operators take as a scale and a zero point of 8-bit integers."""
    if not isinstance(scale, float | int) or not isinstance(zero, int) or integers.dtype not in (DType.i8, DType.u8):
        return False
    low = -128 if integers.dtype is DType.i8 else 0
    return 2.0**-100 <= float(scale) <= 2.0**100 and low <= zero <= low + 255


def _numbers(quantize: Call, q: QuantizedTensor) -> Fixed | None:
    between = _range(quantize, "dtype", q)
    if between is None or q.kind != "tensor" or not is_number_pair(q.scale, q.zero, q.data):
        return None
    if between[1] <= 127 < q.zero:
        return None
    return Fixed(quantize.tensor("input"), q.data, quantize, float(q.scale), int(q.zero), *between)
