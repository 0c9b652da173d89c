# SPDX-License-Identifier: Apache-2.0
"""linear(x) + row -> linear with a bias: a layer whose bias was added by itself."""

from __future__ import annotations

from collections.abc import Callable

import torch

from pumice.fusion.layer import fused, layer_of_sum
from pumice.lowering.call import Call
from pumice.lowering.registry import fuses

aten = torch.ops.aten


@fuses(aten.add.Tensor)
def bias(call: Call) -> Callable[[], None] | None:
    return fused(call, layer_of_sum(call))
