# SPDX-License-Identifier: Apache-2.0
"""linear(x, weight, bias) with float or quantized weights, and an activation behind it; see ops/linear.cpp."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from pumice.op import lowers
from pumice.quantized_weight import quantized_weight
from pumice.shapes import same_shape

if TYPE_CHECKING:
    from pumice.lower import Call, Ref

aten = torch.ops.aten

# ACT_* of glsl/include/activation.glslh.
ACTIVATIONS = {"none": 0, "relu": 1, "gelu": 2, "gelu_tanh": 3, "silu": 4}
_LINEAR = (aten.linear.default,)


@lowers(*_LINEAR)
def linear(call: Call) -> None:
    emit_linear(call, call.tensor("input"), call.tensor("weight"), call["bias"], call.out)


def try_fuse_activation(call: Call, x: Ref, act: str) -> bool:
    """For the record of an activation of `x`: lowers it into the linear layer before it if that has no other reader."""
    before = call.producer(x, *_LINEAR, single_use=True)
    if before is None or x.dtype is not call.out.dtype:
        return False
    emit_linear(before, before.tensor("input"), before.tensor("weight"), before["bias"], call.out, act)
    return True


def try_fuse_residual(call: Call, a: Ref, b: Ref) -> bool:
    """For the record of a + b: lowers it into the linear layer that made one of them for nobody else."""
    if a.identity == b.identity or not same_shape(a.shape, b.shape) or not a.dtype is b.dtype is call.out.dtype:
        return False
    for made, other in ((a, b), (b, a)):
        before = call.producer(made, *_LINEAR, single_use=True)
        if before is not None and (before.tensor("weight").is_constant or before.quantized(before.tensor("weight"))):
            x, weight = before.tensor("input"), before.tensor("weight")
            emit_linear(before, x, weight, before["bias"], call.out, residual=other)
            return True
    return False


def emit_linear(
    call: Call, x: Ref, weight: Ref, bias: Ref | None, out: Ref, act: str = "none", residual: Ref | None = None
) -> None:
    """out = act(x @ weight.T + bias) + residual by the operator that fits the weight."""
    code = ACTIVATIONS[act]
    quantized = quantized_weight(call, weight)
    if quantized is not None:
        if quantized.out_dtype is not x.dtype:
            call.refuse(f"the activation is {x.dtype.name}, the dequantized weight {quantized.out_dtype.name}")
        common = (x, quantized.data, quantized.scale, quantized.zero, bias)
        if quantized.bits == 4:
            call.emit("linear_q4gsw", *common, quantized.group, code, residual, out=out)
        elif quantized.group == quantized.columns:
            call.emit("linear_q8csw", *common, code, residual, out=out)
        else:
            call.emit("linear_q8gsw", *common, quantized.group, code, residual, out=out)
    elif weight.is_constant and weight.rank == 2 and x.rank >= 1:
        call.emit("linear", x, weight, bias, code, residual, out=out)
    elif residual is None and weight.rank == 2 and x.rank >= 2 and (bias is None or bias.rank == 1):
        call.emit("matmul", x, weight, bias, [], [1, 0], code, out=out)
    else:
        call.refuse(f"a computed weight of rank {weight.rank} with an input of rank {x.rank}")
