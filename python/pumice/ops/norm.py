# SPDX-License-Identifier: Apache-2.0
"""layer_norm and rms_norm over the last dimensions, group_norm and instance_norm."""

from __future__ import annotations

import torch

from pumice.lowering.call import Call
from pumice.lowering.operands import is_one, used_outputs
from pumice.lowering.ref import Ref
from pumice.lowering.registry import lowers

aten = torch.ops.aten


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
