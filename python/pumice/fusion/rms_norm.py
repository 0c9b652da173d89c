# SPDX-License-Identifier: Apache-2.0
"""A root mean square norm written by steps: mul(x * rsqrt(mean(x^2, -1, keepdim) + eps), weight) -> rms_norm.

Factors in any order, with casts or not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from pumice.lowering import sizes
from pumice.lowering.call import Call
from pumice.lowering.operands import axes
from pumice.lowering.ref import Ref
from pumice.lowering.registry import fuses

aten = torch.ops.aten
_CASTS = (aten._to_copy.default, aten.to.dtype)


@fuses(aten.mul.Tensor)
def rms_norm(call: Call) -> Callable[[], None] | None:
    """Matches the outer product, with a constant weight [N] for x of [..., N]."""
    norm = rms_norm_of(call)
    if norm is None:
        return None
    return lambda: call.emit("rms_norm", norm.x, 1, call.cast(norm.weight, norm.x.dtype), norm.eps)


@dataclass(frozen=True)
class RmsNorm:
    """A root mean square norm over the last dimension: x [..., N], weight [N], a constant."""

    x: Ref
    weight: Ref
    eps: float


def rms_norm_before(call: Call, ref: Ref) -> RmsNorm | None:
    """The norm that made `ref` for the node of `call` alone."""
    mul = call.producer(ref, aten.mul.Tensor, single_use=True)
    return None if mul is None else rms_norm_of(mul)


def rms_norm_made(call: Call, ref: Ref) -> RmsNorm | None:
    """The norm that made `ref`, which others may read, too: they get it by itself."""
    mul = call.producer(ref, aten.mul.Tensor)
    return None if mul is None else rms_norm_of(mul)


def rms_norm_of(mul: Call) -> RmsNorm | None:
    """The norm whose outer product is the node of `mul`."""
    for scaled, weight in (("self", "other"), ("other", "self")):
        if not all(isinstance(mul[name], Ref) for name in (scaled, weight)):
            return None
        norm = _normed(mul, mul.tensor(scaled), mul.tensor(weight))
        if norm is not None:
            return norm
    return None


def _normed(call: Call, scaled: Ref, weight: Ref) -> RmsNorm | None:
    if weight.rank != 1 or not weight.is_constant or scaled.node is None or scaled.rank < 1:
        return None
    if not sizes.same(weight.shape[0], scaled.shape[-1]):
        return None
    mul = _through_cast(call, scaled, aten.mul.Tensor)
    if mul is None:
        return None
    for x_name, rsqrt_name in (("self", "other"), ("other", "self")):
        x, factor = mul[x_name], mul[rsqrt_name]
        eps = _eps(mul, x, factor)
        if eps is None:
            continue
        source = x
        cast = mul.producer(x, *_CASTS)
        if cast is not None and cast.tensor("self").dtype is call.out.dtype:
            source = cast.tensor("self")
        if source.dtype is not call.out.dtype or not sizes.same_shape(source.shape, call.out.shape):
            return None
        return RmsNorm(source, weight, eps)
    return None


def _through_cast(call: Call, ref: Ref, target: Any) -> Call | None:
    cast = call.producer(ref, *_CASTS, single_use=True)
    if cast is not None:
        ref = cast.tensor("self")
    return call.producer(ref, target, single_use=True)


def _eps(mul: Call, x: Any, factor: Any) -> float | None:
    """The eps of `factor` when it is rsqrt(mean(x^2, -1, keepdim) + eps)."""
    if not (isinstance(x, Ref) and isinstance(factor, Ref)):
        return None
    rsqrt = mul.producer(factor, aten.rsqrt.default, single_use=True)
    add = rsqrt and rsqrt.producer(rsqrt.tensor("self"), aten.add.Tensor, aten.add.Scalar, single_use=True)
    if not add or not isinstance(add["other"], int | float) or add["alpha"] != 1:
        return None
    mean = add.producer(add.tensor("self"), aten.mean.dim, single_use=True)
    if not mean or not mean["keepdim"] or axes(mean["dim"], x.rank) != [x.rank - 1]:
        return None
    square = mean.producer(mean.tensor("self"), aten.pow.Tensor_Scalar, aten.mul.Tensor, single_use=True)
    if not square or not x.is_same(square["self"]):
        return None
    if square.target is aten.mul.Tensor:
        return float(add["other"]) if x.is_same(square["other"]) else None
    return float(add["other"]) if square["exponent"] == 2 else None
