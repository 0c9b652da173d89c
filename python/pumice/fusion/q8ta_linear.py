# SPDX-License-Identifier: Apache-2.0
"""quantize(act(linear(x))) of integers with one scale and zero point -> q8ta_linear, which has integers in and out."""

from __future__ import annotations

from collections.abc import Callable

import torch

from pumice.format.ir import DType
from pumice.fusion.int8_layer import Int8Layer
from pumice.fusion.layer import Layer, layer_before
from pumice.lowering.call import Call
from pumice.lowering.operands import ACTIVATIONS
from pumice.lowering.quantized_activation import Fixed, is_number_pair, quantized_activation
from pumice.lowering.quantized_names import QUANTIZE_NUMBERS
from pumice.lowering.quantized_weight import quantized_weight, whole_rows
from pumice.lowering.registry import fuses

aten = torch.ops.aten


@fuses(QUANTIZE_NUMBERS)
def q8ta_linear(call: Call) -> Callable[[], None] | None:
    found = _integer_layer(call)
    return None if found is None else lambda: _emit(call, *found)


def _emit(call: Call, layer: Layer, source: Fixed, act: str) -> None:
    weight = quantized_weight(layer.call, layer.weight, 8)
    data = layer.call.view(source.data, [*call.out.shape[:-1], weight.columns])
    common = weight.data, weight.scale, weight.zero, layer.bias, ACTIVATIONS[act], source.scale, source.zero
    numbers = call["scale"], call["zero_point"], call["quant_min"], call["quant_max"]
    layer.call.emit("q8ta_linear", data, *common, *numbers, out=call.out)


def _integer_layer(quantize: Call) -> tuple[Layer, Fixed, str] | None:
    """Of a quantize node with numbers: the linear layer of 8-bit integers before it, and the activation between."""
    if str(quantize.target) != QUANTIZE_NUMBERS or not is_number_pair(
        quantize["scale"], quantize["zero_point"], quantize.out
    ):
        return None
    x, act = quantize.tensor("input"), "none"
    relu = quantize.producer(x, aten.relu.default, single_use=True)
    if relu is not None:
        x, act = relu.tensor("self"), "relu"
    layer = layer_before(relu or quantize, x)
    if layer is None or isinstance(layer.weight, Int8Layer) or x.dtype is not DType.f32 or not layer.fits(x):
        return None
    source = quantized_activation(layer.call, layer.x)
    known = isinstance(source, Fixed) and whole_rows(layer.call, layer.weight)
    return (layer, source, act) if known else None
