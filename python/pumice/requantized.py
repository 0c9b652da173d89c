# SPDX-License-Identifier: Apache-2.0
"""What a quantize node can take along from before it, so that integers are computed from integers: a linear layer, or
changes of place of a tensor with the same parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pumice.int8_layer import Int8Layer
from pumice.ir import DType
from pumice.layer import ACTIVATIONS, integer_layer, layer_before
from pumice.permuted import PERMUTES, permutation
from pumice.quantized_activation import (
    VIEWS,
    given_rows,
    is_number_pair,
    is_row,
)
from pumice.quantized_weight import quantized_weight

if TYPE_CHECKING:
    from pumice.lower import Call, Ref


def try_requantized(call: Call) -> bool:
    """For the record of a quantize node with a scale and a zero point for all."""
    found = integer_layer(call)
    if found is None:
        return _try_moved(call)
    layer, source, act = found
    weight = quantized_weight(layer.call, layer.weight, 8)
    data = layer.call.view(source.data, [*call.out.shape[:-1], weight.columns])
    common = weight.data, weight.scale, weight.zero, layer.bias, ACTIVATIONS[act], source.scale, source.zero
    numbers = call["scale"], call["zero_point"], call["quant_min"], call["quant_max"]
    layer.call.emit("q8ta_linear", data, *common, *numbers, out=call.out)
    return True


def _try_moved(call: Call) -> bool:
    """Views and permutations between a dequantize node and a quantize node with the same numbers move the integers."""
    moves, ref, at = [], call.tensor("input"), call
    while (before := at.producer(ref, *VIEWS, *PERMUTES)) is not None:
        moves.append(before)
        ref, at = before.tensor("self"), before
    q = at.quantized(ref)
    if q is None or q.kind != "tensor" or q.data.is_constant or q.data.dtype is not call.out.dtype:
        return False
    numbers = call["scale"], call["zero_point"], call["quant_min"], call["quant_max"]
    if numbers != (q.scale, q.zero, q.qmin, q.qmax) or not is_number_pair(*numbers[:2], call.out):
        return False
    if (q.qmin, q.qmax) != ((-128, 127) if q.data.dtype is DType.i8 else (0, 255)):
        return False  # the integers might have to be clamped
    data = q.data
    for move in reversed(moves):
        if move.target in PERMUTES:
            data = call.emit("permute", data, permutation(move), out=call.temp(data.dtype, move.out.shape))
        else:
            data = call.view(data, move.out.shape)
    call.emit("view", data, list(call.out.shape))
    return True


def try_requantized_rows(call: Call, scale: Ref, zero: Any, between: tuple[int, int]) -> bool:
    """For the record of a quantize node with a scale and a zero point for each row: likewise, if the layer's input is
    int8 with such parameters, too."""
    layer = layer_before(call, call.tensor("input"))
    by_row = "per_token" in str(call.target) or is_row(call, call.tensor("input"))
    if layer is None or isinstance(layer.weight, Int8Layer) or not by_row or between != (-128, 127):
        return False
    q, weight = given_rows(layer.call, layer.x), quantized_weight(layer.call, layer.weight)
    if q is None or weight is None or weight.bits != 4 or not hasattr(zero, "identity"):
        return False
    data = layer.call.view(q.data, [*call.out.shape[:-1], weight.columns])
    common = weight.data, weight.scale, weight.zero, layer.bias, weight.group
    layer.call.emit("linear_qta8a_qga4w_qta8o", data, q.scale, q.zero, *common, scale, zero, out=call.out)
    return True
