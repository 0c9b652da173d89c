# SPDX-License-Identifier: Apache-2.0
"""linear(x, weight, bias) with float or quantized weights, and what other records fuse into one; see ops/linear.cpp."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from pumice.fusion.convolution import Convolution, convolution_before
from pumice.fusion.int8_layer import Int8Layer
from pumice.fusion.layer import Layer, emit_linear, layer_before
from pumice.lowering.registry import lowers
from pumice.lowering.shapes import same_shape

if TYPE_CHECKING:
    from pumice.lowering.call import Call, Ref

aten = torch.ops.aten


@lowers(aten.linear.default)
def linear(call: Call) -> None:
    emit_linear(call, call.tensor("input"), call.tensor("weight"), call["bias"], call.out)


def try_layer(call: Call, layer: Layer | Convolution | None, **more: Any) -> bool:
    """Lowers the layer into the node of `call`, if there is one and it fits."""
    if layer is None or not layer.fits(call.out):
        return False
    layer.emit(call.out, **more)
    return True


def try_fuse_activation(call: Call, x: Ref, act: str) -> bool:
    """For the record of an activation of `x`: lowers it into the linear layer or convolution before it if that has no
    other reader."""
    if x.dtype is not call.out.dtype:
        return False
    return try_layer(call, layer_before(call, x) or convolution_before(call, x), act=act)


def try_fuse_cast(call: Call) -> bool:
    """For the record of a conversion to fp16: torchao's Int8 configurations come to it at the very end."""
    layer = layer_before(call, call.tensor("self"))
    return layer is not None and isinstance(layer.weight, Int8Layer) and try_layer(call, layer)


def try_fuse_residual(call: Call, a: Ref, b: Ref) -> bool:
    """For the record of a + b: lowers it into the linear layer that made one of them for nobody else."""
    if a.identity == b.identity or not same_shape(a.shape, b.shape) or not a.dtype is b.dtype is call.out.dtype:
        return False
    return any(try_layer(call, layer_before(call, made), residual=other) for made, other in ((a, b), (b, a)))
