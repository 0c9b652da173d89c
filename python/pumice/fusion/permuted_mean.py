# SPDX-License-Identifier: Apache-2.0
"""mean(permute(x)) -> a mean over other dimensions of x, where those that stay are in order: as networks whose channels
are last end, before a classifier."""

from __future__ import annotations

from collections.abc import Callable

import torch

from pumice.lowering.call import Call
from pumice.lowering.operands import FLOATS, argument, axes, is_one
from pumice.lowering.permuted import PERMUTES, permutation
from pumice.lowering.ref import Ref
from pumice.lowering.registry import fuses
from pumice.ops.pool import ADAPTIVE, size

aten = torch.ops.aten


def _reduction(call: Call, x: Ref) -> tuple[list[int], bool] | None:
    """The dimensions of a mean, and whether the result keeps them; None for other means."""
    if call.target not in ADAPTIVE:
        return axes(argument(call, "dim"), x.rank), argument(call, "keepdim", False)
    to = size(call)
    return (list(range(x.rank - len(to), x.rank)), True) if all(map(is_one, to)) else None


@fuses(aten.mean.dim, *ADAPTIVE)
def permuted_mean(call: Call) -> Callable[[], None] | None:
    """Matches a permutation that only the mean reads."""
    x, out = call.tensor("self"), call.out
    permuted = call.producer(x, *PERMUTES, single_use=True)
    if permuted is None or x.dtype is not out.dtype or x.dtype not in FLOATS:
        return None
    reduction = _reduction(call, x)
    if reduction is None:
        return None
    (reduced, keepdim), source = reduction, permuted.tensor("self")
    order = permutation(permuted)
    kept = [order[axis] for axis in range(x.rank) if axis not in reduced]
    dims = sorted(set(order) - set(kept))
    if kept != sorted(kept) or not dims:
        return None

    def emit() -> None:
        if not keepdim:
            call.emit("mean", source, dims, False)
            return
        means = call.temp(out.dtype, [source.shape[axis] for axis in kept])
        call.emit("mean", source, dims, False, out=means)
        call.emit("view", means, list(out.shape), out=out)

    return emit
