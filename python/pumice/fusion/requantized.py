# SPDX-License-Identifier: Apache-2.0
"""What a quantize node can take along from before it, so that integers are computed from integers: a linear layer, or
what integers.py knows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pumice.fusion.int8_layer import Int8Layer
from pumice.fusion.integers import plan
from pumice.fusion.layer import ACTIVATIONS, integer_layer, layer_before
from pumice.fusion.quantized_activation import given_rows, is_row
from pumice.lowering.quantized_weight import quantized_weight

if TYPE_CHECKING:
    from pumice.lowering.call import Call, Ref


def try_requantized(call: Call) -> bool:
    """For the record of a quantize node with a scale and a zero point for all."""
    found = integer_layer(call)
    if found is None:
        step = plan(call)
        if step is not None:
            step(call.out)
        return step is not None
    layer, source, act = found
    weight = quantized_weight(layer.call, layer.weight, 8)
    data = layer.call.view(source.data, [*call.out.shape[:-1], weight.columns])
    common = weight.data, weight.scale, weight.zero, layer.bias, ACTIVATIONS[act], source.scale, source.zero
    numbers = call["scale"], call["zero_point"], call["quant_min"], call["quant_max"]
    layer.call.emit("q8ta_linear", data, *common, *numbers, out=call.out)
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
