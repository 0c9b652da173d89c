# SPDX-License-Identifier: Apache-2.0
"""Convolutions of one, two or three dimensions whose weight is computed: a product of it and all windows, which are
kept. conv2d.py and conv3d.py come here."""

from __future__ import annotations

from pumice.format.ir import DType
from pumice.lowering.call import Call
from pumice.lowering.operands import ACTIVATIONS, numel
from pumice.lowering.ref import Ref
from pumice.lowering.sizes import plain
from pumice.lowering.windows import is_transposed, numbers, padding, permuted, windows_of_convolution


def _rows(call: Call, weight: Ref, groups: int) -> Ref:
    """[groups, output channels, (input channels, taps)]."""
    first, second, *taps = weight.shape
    if not is_transposed(call):
        return call.view(weight, [groups, first // groups, second * numel(taps)])
    dims = list(range(2, weight.rank))
    back = call.emit("flip", weight, dims, out=call.temp(weight.dtype, weight.shape))
    apart = call.view(back, [groups, first // groups, second, numel(taps)])
    return call.view(permuted(call, apart, [0, 2, 1, 3]), [groups, second, first // groups * numel(taps)])


def conv_of_computed(call: Call) -> None:
    """A weight of floats, constant or not."""
    x, weight, groups = call.tensor("input"), call.tensor("weight"), call["groups"]
    if x.dtype is not weight.dtype:
        call.refuse(f"x is {x.dtype.name}, the weight {weight.dtype.name}; one dtype is needed")
    if call["bias"] is not None and x.dtype is DType.f16:  # its product would be rounded before the bias is added
        x, weight = call.cast(x, DType.f32), call.cast(weight, DType.f32)
    dims = weight.rank - 2
    kernel = list(weight.shape[2:])
    stride, dilation = numbers(call["stride"], dims), numbers(call["dilation"], dims)
    before, after = padding(call, kernel, dilation)
    if not all(isinstance(size, int) for size in (*weight.shape, *stride, *dilation, *before, *after)):
        call.refuse("a computed weight whose size depends on the inputs")
    batch, channels, *sizes = x.shape if x.rank == dims + 2 else [1, *x.shape]
    counts = list(call.out.shape[-dims:])

    x = call.view(x, [plain(batch * groups), channels // groups, *sizes])
    for i in range(dims):
        pads = (before[i], after[i])
        x = windows_of_convolution(call, x, 2 + 2 * i, counts[i], kernel[i], stride[i], dilation[i], pads)
    order = [0, 1, *range(3, x.rank, 2), *range(2, x.rank, 2)]
    columns = call.view(permuted(call, x, order), [batch, groups, channels // groups * numel(kernel), numel(counts)])
    rows = _rows(call, weight, groups)
    made = call.temp(x.dtype, [batch, groups, rows.shape[1], numel(counts)])
    out = call.emit("matmul", rows, columns, None, [], [], ACTIVATIONS["none"], out=made)
    out = call.view(out, [batch, plain(groups * rows.shape[1]), numel(counts)])
    if call["bias"] is not None:
        bias = call.cast(call.tensor("bias"), out.dtype)
        out = call.emit("add", out, call.view(bias, [bias.shape[0], 1]), 1.0, out=call.temp(out.dtype, out.shape))
    call.emit("view", call.cast(out, call.out.dtype), list(call.out.shape))
