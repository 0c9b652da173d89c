# SPDX-License-Identifier: Apache-2.0
"""quantize(linear(dequantize(x))) with a scale and a zero point for each row, given as tensors, and int4 weights ->
linear_qta8a_qga4w_qta8o."""

from __future__ import annotations

from collections.abc import Callable

from pumice.fusion.int8_layer import Int8Layer
from pumice.fusion.layer import layer_before
from pumice.lowering.call import Call
from pumice.lowering.qparams import limits
from pumice.lowering.quantized_activation import given_rows, is_row
from pumice.lowering.quantized_names import QUANTIZE_AFFINE, QUANTIZE_TOKEN
from pumice.lowering.quantized_weight import quantized_weight
from pumice.lowering.ref import Ref
from pumice.lowering.registry import fuses


@fuses(QUANTIZE_AFFINE, QUANTIZE_TOKEN)
def linear_qta8a_qga4w_qta8o(call: Call) -> Callable[[], None] | None:
    by_token = str(call.target) == QUANTIZE_TOKEN
    scale = call.tensor("scales" if by_token else "scale")
    zero = call["zero_points" if by_token else "zero_point"]
    layer = layer_before(call, call.tensor("input"))
    by_row = by_token or is_row(call, call.tensor("input"))
    if layer is None or isinstance(layer.weight, Int8Layer) or not by_row:
        return None
    if limits(call, "dtype" if by_token else "output_dtype") != (-128, 127):
        return None
    q, weight = given_rows(layer.call, layer.x), quantized_weight(layer.call, layer.weight)
    if q is None or weight is None or weight.bits != 4 or not isinstance(zero, Ref):
        return None

    def emit() -> None:
        data = layer.call.view(q.data, [*call.out.shape[:-1], weight.columns])
        common = weight.data, weight.scale, weight.zero, layer.bias, weight.group
        layer.call.emit("linear_qta8a_qga4w_qta8o", data, q.scale, q.zero, *common, scale, zero, out=call.out)

    return emit
