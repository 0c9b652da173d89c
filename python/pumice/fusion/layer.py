# SPDX-License-Identifier: Apache-2.0
"""Linear layers as other records see them: finding one before a node, in whichever form it was written, and emitting it
by the operator that fits its weight and its input."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from pumice.format.ir import DType
from pumice.fusion.int8_layer import Int8Layer, int8_layer, operands
from pumice.fusion.quantized_activation import (
    QUANTIZE_NUMBERS,
    Chosen,
    Fixed,
    behind_views,
    is_number_pair,
    quantized_activation,
)
from pumice.lowering.permuted import look_through
from pumice.lowering.quantized_weight import QuantizedWeight, quantized_weight, whole_rows
from pumice.lowering.shapes import same_shape

if TYPE_CHECKING:
    from pumice.lowering.call import Call, Ref

aten = torch.ops.aten

# ACT_* of glsl/include/activation.glslh.
ACTIVATIONS = {
    "none": 0, "relu": 1, "gelu": 2, "gelu_tanh": 3, "silu": 4, "relu6": 5, "hardswish": 6, "hardsigmoid": 7
}  # fmt: skip


@dataclass(frozen=True)
class Layer:
    """A linear layer with a constant weight before some node, in whichever form it was written."""

    call: Call
    x: Ref
    weight: Ref | Int8Layer
    bias: Ref | None

    def fits(self, out: Ref) -> bool:
        """Whether it can write `out` itself."""
        return self.x.dtype is out.dtype and (self.bias is None or self.bias.dtype is out.dtype)

    def emit(self, out: Ref, act: str = "none", residual: Ref | None = None) -> None:
        x = self.call.view(behind_views(self.call, self.x), [*out.shape[:-1], self.x.shape[-1]])
        if isinstance(self.weight, Int8Layer):
            layer = self.weight
            emit_quantized(self.call, x, layer.activation, layer.weight, self.bias, out, ACTIVATIONS[act], residual)
        else:
            emit_linear(self.call, x, self.weight, self.bias, out, act, residual)


def layer_before(call: Call, ref: Ref) -> Layer | None:
    """The linear layer that made `ref` for the node of `call` alone."""
    ref = behind_views(call, ref, single_use=True)
    linear = call.producer(ref, aten.linear.default, single_use=True)
    if linear is not None:
        return _constant(Layer(linear, linear.tensor("input"), linear.tensor("weight"), linear["bias"]))
    mm = call.producer(ref, aten.mm.default, single_use=True)
    if mm is not None:
        weight, dims = look_through(mm, mm.tensor("mat2"))
        return _constant(Layer(mm, mm.tensor("self"), weight, None)) if dims == [1, 0] else None
    mul = call.producer(ref, aten.mul.Tensor, single_use=True)
    if mul is not None:
        return layer_of_product(mul)
    add = call.producer(ref, aten.add.Tensor, single_use=True)
    if add is not None:
        return layer_of_sum(add)
    cast = call.producer(ref, aten._to_copy.default, single_use=True)
    layer = layer_before(cast, cast.tensor("self")) if cast is not None else None
    # torchao's Int8 configurations compute in fp32 and come to the model's fp16 at the very end.
    return layer if layer is not None and isinstance(layer.weight, Int8Layer) and layer.x.dtype is ref.dtype else None


def _constant(layer: Layer) -> Layer | None:
    known = layer.weight.is_constant or layer.call.quantized(layer.weight) is not None
    return layer if known and layer.weight.rank == 2 else None


def layer_of_product(mul: Call) -> Layer | None:
    """torchao's Int8 configurations end with a product of the scales."""
    found = int8_layer(mul)
    return Layer(mul, found.x, found, None) if found is not None else None


def layer_of_sum(add: Call) -> Layer | None:
    """A bias that was added by itself."""
    for made, row in operands(add) if add["alpha"] == 1 else ():
        layer = layer_before(add, made) if row.is_constant and row.rank == 1 else None
        if layer is not None and layer.bias is None and same_shape(row.shape, made.shape[-1:]):
            return Layer(layer.call, layer.x, layer.weight, row)
    return None


def integer_layer(quantize: Call) -> tuple[Layer, Fixed, str] | None:
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


def _makes_integers(quantize: Call) -> bool:
    """Whether the node computes its integers without floats."""
    from pumice.fusion.integers import plan  # which knows convolutions, and they know this module

    return integer_layer(quantize) is not None or plan(quantize) is not None


def emit_linear(
    call: Call, x: Ref, weight: Ref, bias: Ref | None, out: Ref, act: str = "none", residual: Ref | None = None
) -> None:
    """out = act(x @ weight.T + bias) + residual by the operator that fits the weight, and x if that is quantized."""
    if weight.is_constant and any(_is_zero(size) for size in weight.shape):
        _emit_empty(call, bias, out, act, residual)
        return
    code = ACTIVATIONS[act]
    activation = quantized_activation(call, x)
    # A static scale has kernels for 8-bit weights by row only; int4 ones by row are such, too.
    quantized = quantized_weight(call, weight, 8 if isinstance(activation, Fixed) and whole_rows(call, weight) else 4)
    if quantized is not None:
        if quantized.out_dtype is not x.dtype:
            call.refuse(f"the activation is {x.dtype.name}, the dequantized weight {quantized.out_dtype.name}")
        emit_quantized(call, x, activation, quantized, bias, out, code, residual)
    elif weight.is_constant and weight.rank == 2 and x.rank >= 1:
        call.emit("linear", x, weight, bias, code, residual, out=out)
    elif residual is None and weight.rank == 2 and x.rank >= 2 and (bias is None or bias.rank == 1):
        call.emit("matmul", x, weight, bias, [], [1, 0], code, out=out)
    else:
        call.refuse(f"a computed weight of rank {weight.rank} with an input of rank {x.rank}")


def _emit_empty(call: Call, bias: Ref | None, out: Ref, act: str, residual: Ref | None) -> None:
    """Of a weight without rows or columns: what a sum of no products leaves."""
    steps = [("add", bias, 1.0)] if bias is not None else []
    steps += [(act,)] if act != "none" else []
    steps += [("add", residual, 1.0)] if residual is not None else []
    made = [call.temp(out.dtype, out.shape) for _ in steps] + [out]
    value = call.emit("full", 0.0, list(out.shape), out=made[0])
    for (op, *more), into in zip(steps, made[1:], strict=True):
        value = call.emit(op, value, *more, out=into)


def _is_zero(size: int | torch.SymInt) -> bool:
    return isinstance(size, int) and size == 0


def emit_quantized(
    call: Call,
    x: Ref,
    activation: Chosen | Fixed | None,
    weight: QuantizedWeight,
    bias: Ref | None,
    out: Ref,
    act: int,
    residual: Ref | None,
) -> None:
    """`activation`: what is known of how x is quantized."""
    by_row = weight.bits == 8 and weight.group == weight.columns
    common = (weight.data, weight.scale, weight.zero, bias)
    group = () if by_row else (weight.group,)
    kind = "q4gsw" if weight.bits == 4 else "q8csw" if by_row else "q8gsw"
    if isinstance(activation, Chosen):
        a = activation
        how = (a.mapping, a.low, a.high, a.eps, a.per_token)
        source = call.view(a.x, x.shape)
        call.emit(f"linear_dq8ca_{kind}", source, *common, *group, act, residual, *how, out=out)
    elif isinstance(activation, Fixed) and by_row:
        a = activation
        # The integers, where they are made without floats.
        floats = x.dtype is not DType.f32 or not _makes_integers(a.made)
        source = call.view(a.x if floats else a.data, x.shape)
        call.emit("linear_q8ta_q8csw", source, *common, act, residual, a.scale, a.zero, a.low, a.high, out=out)
    else:
        call.emit(f"linear_{kind}", x, *common, *group, act, residual, out=out)
