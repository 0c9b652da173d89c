# SPDX-License-Identifier: Apache-2.0
"""embedding(weight, indices), with float or quantized weights; padding_idx means nothing when a model runs."""

from __future__ import annotations

import torch

from pumice.format.ir import DType
from pumice.lowering.call import Call
from pumice.lowering.quantized_weight import BYTES, Matrix, QuantizedWeight, pack, quantized_weight, unpacked
from pumice.lowering.ref import Ref
from pumice.lowering.registry import lowers

aten = torch.ops.aten


@lowers(aten.embedding.default)
def embedding(call: Call) -> None:
    weight, index = call.tensor("weight"), call.tensor("indices")
    q = quantized_weight(call, weight)
    if q is None:
        call.emit("embedding", weight, index)
    else:
        _emit(call, q, index)


def _emit(call: Call, q: QuantizedWeight, index: Ref) -> None:
    if q.out_dtype is not call.out.dtype:
        call.refuse(f"the embedding is {call.out.dtype.name}, its dequantized weight {q.out_dtype.name}")
    op = "embedding_q4gsw" if q.bits == 4 else "embedding_q8gsw"
    call.emit(op, q.data, q.scale, q.zero, index, q.group)


# ExecuTorch's: several integers a byte, but for 8 bits; the first column in the high bits (4) or the low ones (2).
_BITS = {"byte": 8, "4bit": 4, "2bit": 2}


@lowers(*(f"quantized_decomposed.embedding_{bits}.{form}" for bits in _BITS for form in ("default", "dtype")))
def packed_embedding(call: Call) -> None:
    data, scale = call.tensor("weight"), call.tensor("weight_scales")
    bits = _BITS[str(call.target).split(".")[1].removeprefix("embedding_")]
    if not data.is_constant or data.rank != 2 or data.dtype not in BYTES:
        call.refuse("the weight of a quantized embedding must be a constant matrix of bytes")
    columns = data.shape[1] * (8 // bits)
    groups = scale.shape[1] if scale.rank == 2 else 1
    half = 1 << (bits - 1)
    if bits == 8:
        low = -128 if data.dtype is DType.i8 else 0
        high, values = low + 255, lambda: call.value(data)
    else:
        read = unpacked(call, data, bits, high_first=bits == 4)
        low, high, values = -half, half - 1, lambda: read().to(torch.int16) - half
    parameters = scale, call["weight_zero_points"]
    matrix = Matrix(data.key, data.shape[0], columns, values, low, high, columns // groups, *parameters, call.out.dtype)
    _emit(call, pack(call, matrix), call.tensor("indices"))
