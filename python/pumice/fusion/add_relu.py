# SPDX-License-Identifier: Apache-2.0
"""relu(a + b) -> add_relu, unless the sum is the residual of a linear layer (residual.py)."""

from __future__ import annotations

from collections.abc import Callable

import torch

from pumice.fusion.layer import layer_before
from pumice.lowering.call import Call
from pumice.lowering.operands import FLOATS
from pumice.lowering.ref import Ref
from pumice.lowering.registry import fuses
from pumice.ops.binary import pair

aten = torch.ops.aten


@fuses(aten.relu.default)
def add_relu(call: Call) -> Callable[[], None] | None:
    """Matches a sum of two float tensors that this relu alone reads."""
    x = call.tensor("self")
    add = call.producer(x, aten.add.Tensor, single_use=True)
    if add is None or add["alpha"] != 1 or x.dtype not in FLOATS or x.dtype is not call.out.dtype:
        return None
    a, b = pair(add)
    if not all(isinstance(side, Ref) and side.dtype is x.dtype for side in (a, b)):
        return None
    if any(layer_before(add, side) is not None for side in (a, b)):
        return None
    return lambda: call.emit("add_relu", a, b)
