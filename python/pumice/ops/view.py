# SPDX-License-Identifier: Apache-2.0
"""Operators that give the same elements another shape: nothing runs."""

from __future__ import annotations

import torch

from pumice.lowering.call import Call
from pumice.lowering.registry import lowers

aten = torch.ops.aten


@lowers(
    aten.view.default,
    aten.view_copy.default,
    aten._unsafe_view.default,
    aten.reshape.default,
    aten.unsqueeze.default,
    aten.unsqueeze_copy.default,
    aten.squeeze.default,
    aten.squeeze.dim,
    aten.squeeze.dims,
    aten.squeeze_copy.default,
    aten.squeeze_copy.dim,
    aten.squeeze_copy.dims,
    aten.flatten.using_ints,
    aten.unflatten.int,
    # Identities, where a pass has not taken them out.
    aten.alias.default,
    aten.alias_copy.default,
    aten.clone.default,
    aten.contiguous.default,
    aten.detach.default,
    aten.detach_copy.default,
    aten.lift_fresh_copy.default,
)
def view(call: Call) -> None:
    call.emit("view", call.tensor("self"), list(call.out.shape))
