# SPDX-License-Identifier: Apache-2.0
"""Sums, means and maxima of the rows of each bag: rows picked by index_select, then added by their bag."""

from __future__ import annotations

import torch

from pumice.format.ir import DType
from pumice.lowering.call import Call
from pumice.lowering.operands import used_outputs
from pumice.lowering.ref import Ref
from pumice.lowering.registry import lowers
from pumice.ops.index import as_index

aten = torch.ops.aten

_SUM, _MEAN, _MAX = range(3)


def _begun(call: Call, count: int, offsets: Ref) -> Ref:
    """[count, offsets]: whether an element is at an offset or after it."""
    places = call.emit("arange", 0, 1, count, out=call.temp(offsets.dtype, [count]))
    shape = [count, offsets.shape[0]]
    return call.emit("ge", call.view(places, [count, 1]), offsets, out=call.temp(DType.bool, shape))


def _bags(call: Call, count: int, offsets: Ref) -> Ref:
    """[count]: how many bags begin at an element or before it, less one."""
    begun = _begun(call, count, offsets)
    bags = call.emit("sum", begun, [1], False, out=call.temp(DType.i64, [count]))
    return call.emit("sub", bags, 1, 1.0, out=call.temp(DType.i64, [count]))


@lowers(aten._embedding_bag.default, aten._embedding_bag_forward_only.default)
def embedding_bag(call: Call) -> None:
    """The results that only a gradient needs are refused."""
    if used_outputs(call) not in ([], [0]):
        call.refuse("offset2bag, bag_size and max_indices of embedding_bag are not supported")
    weight, indices, offsets = call.tensor("weight"), as_index(call, call.tensor("indices")), call.tensor("offsets")
    out, how, skipped = call.outs[0], call["mode"], call["padding_idx"]
    if how == _MAX and skipped >= 0:
        call.refuse("embedding_bag in mode 'max' with a padding_idx is not supported: leave its rows out on the host")
    count, width = indices.shape[0], weight.shape[1]
    bags, dtype, end = out.shape[0], weight.dtype, None
    if call["include_last_offset"]:
        end = call.emit("slice", offsets, 0, bags, bags + 1, 1, out=call.temp(offsets.dtype, [1]))
        offsets = call.emit("slice", offsets, 0, 0, bags, 1, out=call.temp(offsets.dtype, [bags]))

    rows = call.emit("index_select", weight, indices, 0, out=call.temp(dtype, [count, width]))
    factors = [call.tensor("per_sample_weights")] if call.has("per_sample_weights") else []
    if skipped >= 0:
        kept = call.emit("ne", indices, skipped, out=call.temp(DType.bool, [count]))
        factors.append(call.cast(kept, dtype))
    for factor in factors:
        rows = call.emit("mul", rows, call.view(factor, [count, 1]), out=call.temp(dtype, [count, width]))
    if end is not None and how != _MAX and skipped < 0:  # as eager: in its other forms the last bag has all the rest
        nothing = call.emit("full", 0.0, [1, 1], out=call.temp(dtype, [1, 1]))
        after = _begun(call, count, end)
        rows = call.emit("where", after, nothing, rows, out=call.temp(dtype, [count, width]))
    bag = _bags(call, count, offsets)
    empty = call.emit("full", 0.0, [bags, width], out=call.temp(dtype, [bags, width]))
    if how == _MAX:
        index = call.emit(
            "expand", call.view(bag, [count, 1]), [count, width], out=call.temp(DType.i64, [count, width])
        )
        call.emit("scatter_max", empty, index, rows, 0, False, out=out)
        return
    if how == _SUM:
        call.emit("index_add", empty, bag, rows, 0, out=out)
        return
    total = call.emit("index_add", empty, bag, rows, 0, out=call.temp(dtype, [bags, width]))
    ones = factors[-1] if skipped >= 0 else call.emit("full", 1.0, [count], out=call.temp(dtype, [count]))
    none = call.emit("full", 0.0, [bags], out=call.temp(dtype, [bags]))
    sizes = call.emit("index_add", none, bag, ones, 0, out=call.temp(dtype, [bags]))
    least = call.emit("maximum", sizes, 1.0, out=call.temp(dtype, [bags]))
    call.emit("div", total, call.view(least, [bags, 1]), out=out)
