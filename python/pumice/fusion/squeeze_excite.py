# SPDX-License-Identifier: Apache-2.0
"""gate(layer(act(layer(x)))) of the means of an image's channels -> squeeze_excite. The layers are linear ones, or
convolutions of one pixel: as such each would need dispatches of its own, which take longer than what they compute."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from pumice.format.ir import DType
from pumice.fusion.activation_names import ACTIVATION_TARGETS, activation_name
from pumice.fusion.convolution import convolution_before
from pumice.fusion.layer import layer_before
from pumice.lowering.call import Call
from pumice.lowering.operands import ACTIVATIONS, FLOATS, is_one
from pumice.lowering.quantized import quantized
from pumice.lowering.quantized_activation import before_views
from pumice.lowering.ref import Ref
from pumice.lowering.registry import fuses
from pumice.ops.pool import ADAPTIVE

aten = torch.ops.aten
_GATES = {aten.sigmoid.default: 0, aten.hardsigmoid.default: 1}  # GATE of glsl/squeeze_excite.glsl
_MOST_HIDDEN, _MOST_CHANNELS = 1024, 8192  # of ops/squeeze_excite.cpp
# A workgroup reads whole weights for each row: products of large matrices, and of many rows, have better kernels.
_MOST_WEIGHTS, _MOST_ROWS = 2**19, 512


@dataclass(frozen=True)
class _Layer:
    """x @ weight.T + bias, x [N, K] under any shape."""

    x: Ref
    weight: Ref
    bias: Ref | None
    is_linear: bool

    @property
    def sizes(self) -> tuple:
        return tuple(self.weight.shape[:2])

    def operands(self, call: Call) -> tuple[Ref, Ref | None]:
        """The weight as a matrix, the bias in fp32."""
        weight, bias = self.weight, self.bias
        if not self.is_linear:
            weight = call.constant(
                f"{weight.key}:rows", weight.dtype, self.sizes, lambda: call.value(self.weight).flatten(1)
            )
        if bias is not None and bias.dtype is not DType.f32:
            bias = call.constant(f"{bias.key}:f32", DType.f32, bias.shape, lambda: call.value(self.bias))
        return weight, bias


def _layer(call: Call, ref: Ref) -> _Layer | None:
    """What made `ref` for the node of `call` alone, with constant floats."""
    conv = convolution_before(call, ref)
    if conv is not None:
        pixel = conv.weight is not None and conv.x.rank == conv.weight.rank and all(map(is_one, conv.x.shape[2:]))
        alone = conv.norm is None and conv.groups == 1 and not conv.transposed
        if not (pixel and alone and list(conv.kernel) == [1, 1] and not any(conv.pads)):
            return None
        layer = _Layer(conv.x, conv.weight, conv.bias, is_linear=False)
    else:
        linear = layer_before(call, ref)
        if linear is None or not isinstance(linear.weight, Ref) or linear.x.rank != 2:
            return None
        layer = _Layer(linear.x, linear.weight, linear.bias, is_linear=True)
    floats = layer.weight.is_constant and quantized(call, layer.weight) is None
    known = layer.bias is None or layer.bias.is_constant
    same = layer.x.dtype is layer.weight.dtype is ref.dtype and ref.dtype in FLOATS
    return layer if floats and known and same else None


def _suits(call: Call, squeeze: _Layer) -> bool:
    """Whether the sizes do; two linear layers are taken only behind a mean, as others may have many rows."""
    (hidden, channels), rows = squeeze.sizes, squeeze.x.shape[0]
    few = not isinstance(rows, int) or rows <= _MOST_ROWS
    small = hidden <= _MOST_HIDDEN and channels <= _MOST_CHANNELS and hidden * channels <= _MOST_WEIGHTS
    if not squeeze.is_linear:
        return few and small
    pooled = call.producer(before_views(call, squeeze.x, rows=False), aten.mean.dim, *ADAPTIVE)
    return few and small and pooled is not None


@fuses(*_GATES, first=True)  # a hardsigmoid is an activation, too
def squeeze_excite(call: Call) -> Callable[[], None] | None:
    """Matches layers whose results are read here alone."""
    y, out = call.tensor("self"), call.out
    excite = _layer(call, y) if y.dtype is out.dtype else None
    if excite is None:
        return None
    act, inner = "none", excite.x
    if (activation := call.producer(inner, *ACTIVATION_TARGETS, single_use=True)) is not None:
        act, inner = activation_name(activation), activation.tensor("self")
    squeeze = _layer(call, inner) if act and inner.dtype is excite.x.dtype else None
    if squeeze is None or squeeze.sizes != excite.sizes[::-1] or not _suits(call, squeeze):
        return None

    def emit() -> None:
        x, flat = squeeze.x, [squeeze.x.shape[0], squeeze.sizes[1]]
        weights = (*squeeze.operands(call), *excite.operands(call))
        factors = out if out.rank == 2 else call.temp(out.dtype, flat)
        call.emit("squeeze_excite", call.view(x, flat), *weights, ACTIVATIONS[act], _GATES[call.target], out=factors)
        if factors is not out:
            call.emit("view", factors, list(out.shape), out=out)

    return emit
