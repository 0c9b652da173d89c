# SPDX-License-Identifier: Apache-2.0
"""Linear layers that torchao's Int8WeightOnlyConfig and Int8DynamicActivationInt8WeightConfig write without any
dequantize node: a matrix product of the stored integers, then products with the scales.

    mm(x, int8.T as floats) * scale        _int_mm(q, int8.T) * x_scale [- x_zero * x_scale * sum(int8)] * scale

The integers of q may be shifted by 128 to unsigned ones and back: which of the two is written depends on the CPU that
exports.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from pumice.format.ir import DType
from pumice.lowering.call import Call
from pumice.lowering.permuted import PERMUTES, permutation
from pumice.lowering.qparams import MAPPINGS, symmetric_zero
from pumice.lowering.quantized_activation import Chosen, before_views, chosen_tokens
from pumice.lowering.quantized_weight import Matrix, QuantizedWeight, pack
from pumice.lowering.ref import Ref

aten = torch.ops.aten
_CASTS = (aten._to_copy.default, aten.to.dtype)
_SHIFT = 128


@dataclass(frozen=True)
class Int8Layer:
    """What such a layer is made of. `activation`: None when x stays as floats."""

    x: Ref
    activation: Chosen | None
    weight: QuantizedWeight


def int8_layer(mul: Call) -> Int8Layer | None:
    """The layer whose last step is the node of `mul`, a product with the scales of the weight."""
    for product, scale in operands(mul):
        if not scale.is_constant or scale.rank < 1 or scale.dtype not in (DType.f32, DType.f16):
            continue
        found = _floats(mul, product) or _integers(mul, product)
        if found is not None and _is_row(scale, found[2].shape[0]):
            x, activation, data = found
            return Int8Layer(x, activation, _weight(mul, data, scale, x.dtype))
    return None


def _weight(call: Call, data: Ref, scale: Ref, dtype: DType) -> QuantizedWeight:
    rows, columns = data.shape
    values = lambda: call.value(data)  # noqa: E731
    return pack(call, Matrix(data.key, rows, columns, values, -128, 127, columns, scale, None, dtype))


def operands(call: Call) -> list[tuple[Ref, Ref]]:
    """The operands of a sum or a product in both orders; nothing where one is a number."""
    a, b = call["self"], call["other"]
    return [(a, b), (b, a)] if isinstance(a, Ref) and isinstance(b, Ref) else []


def _is_row(ref: Ref, size: int) -> bool:
    """Whether `ref` broadcasts as a row of `size` elements."""
    return all(s == 1 for s in ref.shape[:-1]) and ref.shape[-1] == size


def _before_casts(call: Call, ref: Ref, single_use: bool = True) -> Ref:
    while (before := call.producer(ref, *_CASTS, single_use=single_use)) is not None:
        ref = before.tensor("self")
    return ref


def _int8(call: Call, ref: Ref, transposed: bool) -> Ref | None:
    """The constant int8 matrix [N, K] before casts and transpositions."""
    dims = [0, 1]
    while (before := call.producer(ref, *_CASTS, *PERMUTES)) is not None:
        if before.target in PERMUTES:
            inner = permutation(before)
            dims = [inner[d] for d in dims] if len(inner) == 2 else dims
        ref = before.tensor("self")
    known = ref.is_constant and ref.rank == 2 and ref.torch_dtype is torch.int8
    return ref if known and dims == ([1, 0] if transposed else [0, 1]) else None


def _floats(call: Call, product: Ref) -> tuple[Ref, None, Ref] | None:
    product = before_views(call, product)
    before = call.producer(product, aten.mm.default, aten.linear.default, single_use=True)
    if before is None or (before.target is aten.linear.default and before.has("bias")):
        return None
    if before.target is aten.linear.default:
        x, data = before.tensor("input"), _int8(before, before.tensor("weight"), False)
    else:
        x, data = before.tensor("self"), _int8(before, before.tensor("mat2"), True)
    return None if data is None else (x, None, data)


def _integers(call: Call, product: Ref) -> tuple[Ref, Chosen, Ref] | None:
    product, zero = _before_casts(call, product), None
    minus = call.producer(product, aten.sub.Tensor, single_use=True)
    if minus is not None and minus["alpha"] == 1:
        product, zero = minus.tensor("self"), minus.tensor("other")
    scaled = call.producer(product, aten.mul.Tensor, single_use=True)
    for whole, scale in operands(scaled) if scaled else ():
        found = _int_mm(scaled, _before_casts(scaled, whole))
        if found is None:
            continue
        quantize, data = found
        chosen = chosen_tokens(quantize)
        if chosen is None or not _same(_before_views(scaled, scale), quantize["scale"]):
            continue
        centred = chosen.mapping != MAPPINGS["ASYMMETRIC"] and symmetric_zero(chosen.low, chosen.high) == 0
        if centred if zero is None else _is_zero_term(minus, zero, quantize, data):
            return chosen.x, chosen, data
    return None


def _int_mm(call: Call, product: Ref) -> tuple[Call, Ref] | None:
    """The quantize node of the left side and the int8 matrix [N, K] of the right side."""
    shifted = False
    minus = call.producer(product, aten.sub.Tensor, single_use=True)
    if minus is not None and minus["alpha"] == 1:
        product, shifted = minus.tensor("self"), True
    before = call.producer(product, aten._int_mm.default, single_use=True)
    data = None if before is None else _int8(before, before.tensor("mat2"), True)
    if data is None:
        return None
    q = before.tensor("self")
    if shifted:
        q = _before_casts(before, q)
        plus = before.producer(q, aten.add.Tensor, single_use=True)
        if plus is None or plus["other"] != _SHIFT or plus["alpha"] != 1 or not _is_shifted_sum(minus, data):
            return None
        q = _before_casts(plus, plus.tensor("self"), single_use=False)
    quantize = before.producer(_before_views(before, q), "torchao.quantize_affine.default")
    return None if quantize is None else (quantize, data)


def _is_sum(call: Call, ref: Ref, data: Ref) -> bool:
    """The sum over each row of `data`."""
    total = call.producer(_before_casts(call, ref, single_use=False), aten.sum.dim_IntList)
    if total is None:
        return False
    x, dims = total.tensor("self"), [d % 2 for d in total["dim"]]
    return any(_same(_int8(total, x, turned), data) and dims == [0 if turned else 1] for turned in (False, True))


def _is_shifted_sum(minus: Call, data: Ref) -> bool:
    times = minus.producer(minus.tensor("other"), aten.mul.Tensor)
    return times is not None and times["other"] == _SHIFT and _is_sum(times, times.tensor("self"), data)


def _is_zero_term(minus: Call, zero: Ref, quantize: Call, data: Ref) -> bool:
    """(x_zero * x_scale) * sum(data)"""
    outer = minus.producer(zero, aten.mul.Tensor)
    for part, total in operands(outer) if outer else ():
        inner = outer.producer(part, aten.mul.Tensor)
        if inner is None or not _is_sum(outer, total, data):
            continue
        for point, scale in operands(inner):
            point = _before_views(inner, _before_casts(inner, point, single_use=False))
            if _same(point, quantize["zero_point"]) and _same(_before_views(inner, scale), quantize["scale"]):
                return True
    return False


def _before_views(call: Call, ref: Ref) -> Ref:
    """Whatever the views do, the elements and their order stay."""
    return before_views(call, ref, rows=False)


def _same(a: Any, b: Any) -> bool:
    return isinstance(a, Ref) and a.is_same(b)
