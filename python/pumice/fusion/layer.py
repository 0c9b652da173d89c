# SPDX-License-Identifier: Apache-2.0
"""Finds the linear layer in front of a node, in each form that torch and torchao write one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch

from pumice.fusion.int8_layer import Int8Layer, int8_layer, operands
from pumice.fusion.product import Product
from pumice.lowering.call import Call
from pumice.lowering.operands import ACTIVATIONS
from pumice.lowering.permuted import look_through
from pumice.lowering.quantized import quantized
from pumice.lowering.quantized_activation import before_views
from pumice.lowering.ref import Ref
from pumice.lowering.sizes import same, same_shape
from pumice.ops.linear import emit_linear, emit_quantized

aten = torch.ops.aten


@dataclass(frozen=True)
class Layer:
    """A linear layer with a constant weight in any form. x: [..., K]; weight: [N, K]; bias: [N] or None; scale: [N] or
    None, factors of the columns of a layer with a float weight."""

    call: Call
    x: Ref
    weight: Ref | Int8Layer
    bias: Ref | None
    scale: Ref | None = None

    def fits(self, out: Ref) -> bool:
        """Whether it can write `out` itself."""
        return self.x.dtype is out.dtype and (self.bias is None or self.bias.dtype is out.dtype)

    @property
    def product(self) -> Product | None:
        """The layer as a part of a larger product; None of one of integers, which has its own scales."""
        return Product(self.call, self.x, self.weight, self.bias) if isinstance(self.weight, Ref) else None

    def emit(self, out: Ref, act: str = "none", residual: Ref | None = None) -> None:
        """The layer, act(x @ weight.T + bias) + residual, into `out`, [..., N]. `act`: a name of ACTIVATIONS."""
        x = self.call.view(before_views(self.call, self.x), [*out.shape[:-1], self.x.shape[-1]])
        if isinstance(self.weight, Int8Layer):
            layer = self.weight
            emit_quantized(self.call, x, layer.activation, layer.weight, self.bias, out, ACTIVATIONS[act], residual)
        else:
            emit_linear(self.call, x, self._scaled(self.weight), self._scaled(self.bias), out, act, residual)

    def _scaled(self, factor: Ref | None) -> Ref | None:
        """The weight or the bias by the scale, rounded once more to their dtype."""
        call, scale = self.call, self.scale
        if scale is None or factor is None:
            return factor
        key = f"{factor.key} * {scale.key}"
        shape = [-1] + [1] * (factor.rank - 1)
        scaled = lambda: call.value(factor).double() * call.value(scale).double().view(shape)  # noqa: E731
        return call.constant(key, factor.dtype, factor.shape, scaled)


def layer_before(call: Call, ref: Ref) -> Layer | None:
    """The linear layer that made `ref` for the node of `call` alone. A constant is none: what it is made of may
    have a dtype that no device has."""
    if ref.is_constant:
        return None
    ref = before_views(call, ref, single_use=True)
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


def layer_of_heads(call: Call, heads: Ref, single_use: bool = False) -> Layer | None:
    """The layer whose result [B, L, H * E] was viewed as `heads`, [B, L, H, E]; `single_use`: by views that nothing
    else reads."""
    rows = before_views(call, heads, rows=False, single_use=single_use)
    whole = rows.rank >= 2 and same(rows.shape[-1], heads.shape[-1] * heads.shape[-2])
    return layer_before(call, rows) if whole else None


def _constant(layer: Layer) -> Layer | None:
    known = layer.weight.is_constant or quantized(layer.call, layer.weight) is not None
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


def scaled_layer_before(call: Call, ref: Ref) -> Layer | None:
    """The layer with a float weight whose columns a constant row multiplies, the layer scale of image networks."""
    mul = call.producer(ref, aten.mul.Tensor, single_use=True)
    for made, row in operands(mul) if mul is not None else ():
        layer = layer_before(mul, made) if row.is_constant and row.rank == 1 else None
        if layer is None or not isinstance(layer.weight, Ref) or not layer.weight.is_constant:
            continue
        if layer.bias is not None and not layer.bias.is_constant:
            continue
        if row.dtype is layer.weight.dtype and same_shape(row.shape, made.shape[-1:]):
            return replace(layer, scale=row)
    return None


def fused(call: Call, layer: Layer | None, **more: Any) -> Callable[[], None] | None:
    """Emits the layer as the node of `call`, with `more` for Layer.emit; None without one or where it does not fit."""
    if layer is None or not layer.fits(call.out):
        return None
    return lambda: layer.emit(call.out, **more)
