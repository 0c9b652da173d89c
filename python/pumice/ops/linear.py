# SPDX-License-Identifier: Apache-2.0
"""linear(x, weight, bias) with float or quantized weights, and x as floats or as integers; see ops/linear.cpp."""

from __future__ import annotations

import torch

from pumice.format.ir import DType
from pumice.lowering.call import Call
from pumice.lowering.operands import ACTIVATIONS
from pumice.lowering.quantized_activation import Chosen, Fixed, quantized_activation
from pumice.lowering.quantized_weight import QuantizedWeight, quantized_weight, whole_rows
from pumice.lowering.ref import Ref
from pumice.lowering.registry import lowers

aten = torch.ops.aten


@lowers(aten.linear.default)
def linear(call: Call) -> None:
    """x @ weight.T + bias"""
    emit_linear(call, call.tensor("input"), call.tensor("weight"), call["bias"], call.out)


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
    elif residual is None and weight.rank == 2 and x.rank >= 1 and (bias is None or bias.rank == 1):
        rows = call.view(x, [1, *x.shape]) if x.rank == 1 else x
        made = out if x.rank > 1 else call.temp(out.dtype, [1, *out.shape])
        call.emit("matmul", rows, weight, bias, [], [1, 0], code, out=made)
        if made is not out:
            call.emit("view", made, list(out.shape), out=out)
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
        floats = x.dtype is not DType.f32 or not call.matches(a.made)
        source = call.view(a.x if floats else a.data, x.shape)
        call.emit("linear_q8ta_q8csw", source, *common, act, residual, a.scale, a.zero, a.low, a.high, out=out)
    else:
        call.emit(f"linear_{kind}", x, *common, *group, act, residual, out=out)
