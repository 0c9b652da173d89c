# SPDX-License-Identifier: Apache-2.0
"""Matrix products of any rank; permuted operands are read in place. See ops/matmul.cpp."""

from __future__ import annotations

import torch

from pumice.lowering.call import Call
from pumice.lowering.permuted import is_identity, look_through
from pumice.lowering.quantized import quantized
from pumice.lowering.ref import Ref
from pumice.lowering.registry import lowers
from pumice.lowering.sizes import same_shape
from pumice.ops.linear import emit_linear

aten = torch.ops.aten


@lowers(aten.mm.default, aten.bmm.default)
def mm(call: Call) -> None:
    """Products of matrices, and of batches of them."""
    _product(call, call.tensor("self"), call.tensor("mat2"), None, call.out)


@lowers(aten._int_mm.default)
def int_mm(call: Call) -> None:
    """What torchao's Int8 configurations write is taken whole (fusion/int8_layer.py)."""
    call.refuse(
        "a product of integers by itself; supported in Int8DynamicActivationInt8WeightConfig, with fp16 for "
        "act_mapping_type=SYMMETRIC, and in Int8DynamicActivationIntxWeightConfig"
    )


@lowers(aten.matmul.default)
def matmul(call: Call) -> None:
    """Products of any ranks, broadcast over the batch."""
    a, b = call.tensor("self"), call.tensor("other")
    if a.rank >= 2 and b.rank >= 2:
        _product(call, a, b, None, call.out)
    else:
        _vectors(call, a, b)


@lowers(aten.mv.default)
def mv(call: Call) -> None:
    """A matrix by a vector."""
    _vectors(call, call.tensor("self"), call.tensor("vec"))


@lowers(aten.dot.default)
def dot(call: Call) -> None:
    """The inner product of two vectors."""
    _vectors(call, call.tensor("self"), call.tensor("tensor"))


@lowers(aten.addmm.default)
def addmm(call: Call) -> None:
    """beta * self + alpha * (mat1 @ mat2)"""
    _plus(call, call.tensor("mat1"), call.tensor("mat2"))


@lowers(aten.baddbmm.default)
def baddbmm(call: Call) -> None:
    """beta * self + alpha * (batch1 @ batch2)"""
    _plus(call, call.tensor("batch1"), call.tensor("batch2"))


def _vectors(call: Call, a: Ref, b: Ref) -> None:
    """A vector on the left is a row, one on the right a column; the dimension that this adds is taken out again."""
    shape = list(call.out.shape)
    if a.rank == 1:
        a = call.view(a, [1, *a.shape])
        shape.insert(len(shape) if b.rank == 1 else len(shape) - 1, 1)
    if b.rank == 1:
        b = call.view(b, [*b.shape, 1])
        shape.append(1)
    product = call.temp(call.out.dtype, shape)
    _product(call, a, b, None, product)
    call.emit("view", product, list(call.out.shape))


def _plus(call: Call, a: Ref, b: Ref) -> None:
    """beta * self + alpha * (a @ b)"""
    bias, alpha, beta, out = call.tensor("self"), call["alpha"], call["beta"], call.out
    if beta == 0:  # self is not read then, not even its NaNs
        _scaled(call, a, b, alpha, out)
    elif alpha == 1 and beta == 1 and bias.rank == 1 and same_shape(bias.shape, out.shape[-1:]):
        _product(call, a, b, bias, out)
    else:
        product = call.temp(out.dtype, out.shape)
        _scaled(call, a, b, alpha, product)
        call.emit("add", product, bias, float(beta))


def _scaled(call: Call, a: Ref, b: Ref, alpha: float, out: Ref) -> None:
    if alpha == 1:
        _product(call, a, b, None, out)
    else:
        product = call.temp(out.dtype, out.shape)
        _product(call, a, b, None, product)
        call.emit("mul", product, float(alpha), out=out)


def _product(call: Call, a: Ref, b: Ref, bias: Ref | None, out: Ref) -> None:
    left, left_dims = look_through(call, a)
    right, right_dims = look_through(call, b)
    if right_dims == [1, 0] and (right.is_constant or quantized(call, right) is not None):
        emit_linear(call, a, right, bias, out)  # x @ weight.T, with the weight packed
        return
    call.emit("matmul", left, right, bias, _dims(left_dims), _dims(right_dims), 0, out=out)


def _dims(dims: list[int]) -> list[int]:
    return [] if is_identity(dims) else dims
