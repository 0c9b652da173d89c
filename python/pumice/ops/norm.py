# SPDX-License-Identifier: Apache-2.0
"""layer_norm and rms_norm over the last dimensions, the decomposed form of rms_norm, group_norm and instance_norm."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from pumice.lowering import shapes
from pumice.lowering.operands import axes, is_one, used_outputs
from pumice.lowering.registry import lowers

if TYPE_CHECKING:
    from pumice.lowering.call import Call, Ref

aten = torch.ops.aten

_CASTS = (aten._to_copy.default, aten.to.dtype)
_MUL = (aten.mul.Tensor,)


def _factor(call: Call, name: str, x: Ref) -> Ref | None:
    return call.cast(call.tensor(name), x.dtype) if call.has(name) else None


@lowers(aten.layer_norm.default, aten.native_layer_norm.default)
def layer_norm(call: Call) -> None:
    if call.target is aten.native_layer_norm.default and used_outputs(call) != [0]:
        call.refuse("the mean and rstd results of native_layer_norm are not supported")
    x = call.tensor("input")
    weight, bias = _factor(call, "weight", x), _factor(call, "bias", x)
    call.emit("layer_norm", x, len(call["normalized_shape"]), weight, bias, call["eps"], out=call.out)


@lowers(aten.group_norm.default, aten.native_group_norm.default)
def group_norm(call: Call) -> None:
    native = call.target is aten.native_group_norm.default
    if native and used_outputs(call) != [0]:
        call.refuse("the mean and rstd results of native_group_norm are not supported")
    _group_norm(call, call["group" if native else "num_groups"])


@lowers(aten.instance_norm.default, aten._native_batch_norm_legit.no_stats)
def instance_norm(call: Call) -> None:
    """A group for each channel; the second form is a batch norm of one image with the statistics of its channels."""
    if call.target is aten.instance_norm.default:
        if not call["use_input_stats"]:
            call.refuse("instance_norm with stored statistics is not supported")
    elif used_outputs(call) != [0] or not is_one(call.tensor("input").shape[0]):
        call.refuse("batch_norm with the statistics of a batch is not supported")
    _group_norm(call, call.tensor("input").shape[1])


def _group_norm(call: Call, groups: int) -> None:
    x = call.tensor("input")
    call.emit("group_norm", x, groups, _factor(call, "weight", x), _factor(call, "bias", x), call["eps"], out=call.out)


@lowers(aten.rms_norm.default)
def rms_norm(call: Call) -> None:
    x = call.tensor("input")
    eps = call["eps"] if call.has("eps") else torch.finfo(torch.float32).eps  # eager computes fp16 in fp32, too
    call.emit("rms_norm", x, len(call["normalized_shape"]), _factor(call, "weight", x), eps)


def fused_rms_norm(call: Call) -> bool:
    """mul(x * rsqrt(mean(x^2, -1, keepdim) + eps), weight) -> rms_norm, in any order of factors, with casts or not.
    `call` is the outer mul; True when it was that."""
    if call.target not in _MUL:
        return False
    for scaled, weight in (("self", "other"), ("other", "self")):
        if not all(hasattr(call[name], "identity") for name in (scaled, weight)):
            return False
        if _fuse(call, call.tensor(scaled), call.tensor(weight)):
            return True
    return False


def _fuse(call: Call, scaled: Ref, weight: Ref) -> bool:
    if weight.rank != 1 or not weight.is_constant or scaled.node is None or scaled.rank < 1:
        return False
    if not shapes.same(weight.shape[0], scaled.shape[-1]):
        return False
    mul = _through_cast(call, scaled, _MUL)
    if mul is None:
        return False
    for x_name, rsqrt_name in (("self", "other"), ("other", "self")):
        x, factor = mul[x_name], mul[rsqrt_name]
        eps = _eps(mul, x, factor)
        if eps is None:
            continue
        source = x
        cast = mul.producer(x, *_CASTS)
        if cast is not None and cast.tensor("self").dtype is call.out.dtype:
            source = cast.tensor("self")
        if source.dtype is not call.out.dtype or not shapes.same_shape(source.shape, call.out.shape):
            return False
        call.emit("rms_norm", source, 1, call.cast(weight, source.dtype), eps)
        return True
    return False


def _through_cast(call: Call, ref: Ref, targets: tuple[Any, ...]) -> Call | None:
    cast = call.producer(ref, *_CASTS, single_use=True)
    if cast is not None:
        ref = cast.tensor("self")
    return call.producer(ref, *targets, single_use=True)


def _eps(mul: Call, x: Any, factor: Any) -> float | None:
    """The eps of `factor` when it is rsqrt(mean(x^2, -1, keepdim) + eps)."""
    if not (hasattr(x, "identity") and hasattr(factor, "identity")):
        return None
    rsqrt = mul.producer(factor, aten.rsqrt.default, single_use=True)
    add = rsqrt and rsqrt.producer(rsqrt.tensor("self"), aten.add.Tensor, aten.add.Scalar, single_use=True)
    if not add or not isinstance(add["other"], int | float) or add["alpha"] != 1:
        return None
    mean = add.producer(add.tensor("self"), aten.mean.dim, single_use=True)
    if not mean or not mean["keepdim"] or axes(mean["dim"], x.rank) != [x.rank - 1]:
        return None
    square = mean.producer(mean.tensor("self"), aten.pow.Tensor_Scalar, aten.mul.Tensor, single_use=True)
    if not square or not _same(square["self"], x):
        return None
    if square.target is aten.mul.Tensor:
        return float(add["other"]) if _same(square["other"], x) else None
    return float(add["other"]) if square["exponent"] == 2 else None


def _same(a: Any, b: Ref) -> bool:
    return hasattr(a, "identity") and a.identity == b.identity
