# SPDX-License-Identifier: Apache-2.0
"""layer_norm and rms_norm over the last dimensions, group_norm and instance_norm."""

from __future__ import annotations

import torch

from pumice.lowering.call import Call
from pumice.lowering.operands import is_one, numel, used_outputs
from pumice.lowering.ref import Ref
from pumice.lowering.registry import lowers

aten = torch.ops.aten


def _factor(call: Call, name: str, x: Ref) -> Ref | None:
    return call.cast(call.tensor(name), x.dtype) if call.has(name) else None


def _statistics(call: Call, x: Ref, dims: list[int]) -> None:
    """The mean and 1 / standard deviation that native forms also give, each only if it is read."""
    for index in used_outputs(call):
        if index == 0:
            continue
        out = call.outs[index]
        kept = [1 if dim in dims else size for dim, size in enumerate(x.shape)]
        op, more = ("mean", ()) if index == 1 else ("var", (0.0,))
        found = call.emit(op, call.cast(x, out.dtype), dims, True, *more, out=call.temp(out.dtype, kept))
        if index == 2:
            found = call.emit("add", found, call["eps"], 1.0, out=call.temp(out.dtype, kept))
            found = call.emit("rsqrt", found, out=call.temp(out.dtype, kept))
        call.emit("view", found, list(out.shape), out=out)


@lowers(aten.layer_norm.default, aten.native_layer_norm.default)
def layer_norm(call: Call) -> None:
    """Over the dimensions of normalized_shape, which are the last ones."""
    x = call.tensor("input")
    if call.target is aten.native_layer_norm.default:
        _statistics(call, x, list(range(x.rank - len(call["normalized_shape"]), x.rank)))
        if 0 not in used_outputs(call):
            return
    weight, bias = _factor(call, "weight", x), _factor(call, "bias", x)
    call.emit("layer_norm", x, len(call["normalized_shape"]), weight, bias, call["eps"], out=call.out)


@lowers(aten.group_norm.default, aten.native_group_norm.default)
def group_norm(call: Call) -> None:
    """Over the channels of each group and all that follows them."""
    native = call.target is aten.native_group_norm.default
    groups = call["group" if native else "num_groups"]
    if native:
        x = call.tensor("input")
        batch, channels, *rest = x.shape
        if any(index in used_outputs(call) for index in (1, 2)):
            _statistics(call, call.view(x, [batch, groups, channels // groups * numel(rest)]), [2])
        if 0 not in used_outputs(call):
            return
    _group_norm(call, groups)


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
    """x / sqrt(mean(x^2) + eps) * weight over the last dimensions."""
    x = call.tensor("input")
    eps = call["eps"] if call.has("eps") else torch.finfo(torch.float32).eps  # eager computes fp16 in fp32, too
    call.emit("rms_norm", x, len(call["normalized_shape"]), _factor(call, "weight", x), eps)
