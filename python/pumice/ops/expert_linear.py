# SPDX-License-Identifier: Apache-2.0
"""pumice::expert_linear (passes/experts.py): each row's own linear layers. See ops/expert_linear.cpp."""

from __future__ import annotations

import torch

from pumice.format.ir import DType
from pumice.lowering.call import Call
from pumice.lowering.operands import ACTIVATIONS, GATE_ROWS
from pumice.lowering.quantized_weight import quantized_weight
from pumice.lowering.ref import Ref
from pumice.lowering.registry import lowers


@lowers("pumice.expert_linear.default")
def expert_linear(call: Call) -> None:
    """The weight is a constant, of floats or of integers with scales."""
    x, weight, experts, gated = call.tensor("x"), call.tensor("weight"), call["experts"], call["gated"]
    rows, columns = weight.shape[0] // experts, weight.shape[1]
    if rows % (2 * GATE_ROWS if gated else GATE_ROWS) or columns % 8:
        call.refuse(
            f"experts of {rows} x {columns} weights; multiples of {GATE_ROWS}, each of a gate's, and 8 are needed"
        )
    q = quantized_weight(call, weight)
    if q is None and not weight.is_constant:
        call.refuse("the weight of experts is computed, not constant")
    if q is not None and q.out_dtype is not x.dtype:
        call.refuse(f"the activation is {x.dtype.name}, the dequantized weight {q.out_dtype.name}")
    parts = (weight, None, None) if q is None else (q.data, q.scale, q.zero)
    if gated:
        parts = tuple(part and _gated(call, part, experts) for part in parts)
    group = 0 if q is None else q.group
    factors = None if call["factors"] is None else call.cast(call.tensor("factors"), DType.f32)
    chosen = call.tensor("chosen"), factors
    call.emit("expert_linear", x, *parts, *chosen, experts, group, ACTIVATIONS[call["act"]], gated)


def _gated(call: Call, part: Ref, experts: int) -> Ref:
    """A constant [E * N, ..] whose experts have a gate's rows, then as many others, with both in blocks in turn."""

    def values() -> torch.Tensor:
        return call.value(part).unflatten(0, (experts, 2, -1, GATE_ROWS)).transpose(1, 2).flatten(0, 3)

    return call.constant(f"{part.key} /{GATE_ROWS}/ of {experts}", part.dtype, part.shape, values)
