# SPDX-License-Identifier: Apache-2.0
"""act(gate(x)) * up(x) -> one product of both layers that gates its own sums, with the norm that made x."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch

from pumice.fusion.activation_names import ACTIVATION_TARGETS, activation_name
from pumice.fusion.layer import layer_before
from pumice.fusion.merged_layers import can_fuse, emit_fused, merged, norm_in_front
from pumice.fusion.product import Product
from pumice.lowering.call import Call
from pumice.lowering.operands import GATE_ROWS
from pumice.lowering.ref import Ref
from pumice.lowering.registry import fuses

aten = torch.ops.aten


@fuses(aten.mul.Tensor)
def gated_layers(call: Call) -> Callable[[], None] | None:
    """Matches two layers with weights of one form and the same input, whose results nothing else reads."""
    for gate, up in (("self", "other"), ("other", "self")):
        if not (isinstance(call[gate], Ref) and isinstance(call[up], Ref)):
            return None
        act = call.producer(call.tensor(gate), *ACTIVATION_TARGETS, single_use=True)
        name = activation_name(act) if act is not None else ""
        found = name and _emit(call, name, _product(act, act.tensor("self")), _product(call, call.tensor(up)))
        if found:
            return found
    return None


def _product(call: Call, ref: Ref) -> Product | None:
    layer = layer_before(call, ref)
    return layer.product if layer is not None and layer.fits(call.out) else None


def _emit(call: Call, act: str, gate: Product | None, up: Product | None) -> Callable[[], None] | None:
    if gate is None or up is None or gate.weight.shape[0] != up.weight.shape[0]:
        return None
    if gate.weight.shape[0] % GATE_ROWS != 0:
        return None
    layer = merged(call, [gate, up], GATE_ROWS)
    if layer is None or not can_fuse(layer):
        return None
    return partial(emit_fused, call, layer, norm_in_front(call, layer), act, True, call.out)
