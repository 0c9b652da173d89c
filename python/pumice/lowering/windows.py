# SPDX-License-Identifier: Apache-2.0
"""Windows of a tensor as dimensions of their own: for convolutions that are lowered to products."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from pumice.format.ir import DType
from pumice.lowering.call import Call
from pumice.lowering.operands import Size, is_one
from pumice.lowering.ref import Ref
from pumice.lowering.sizes import plain


def is_transposed(call: Call) -> bool:
    """Whether a convolution is."""
    return "transpose" in str(call.target) or ("convolution" in str(call.target) and bool(call["transposed"]))


def numbers(sizes: Any, dims: int) -> list[int]:
    """One for each dimension, of a list or of one number for all."""
    given = [sizes] if isinstance(sizes, int) else list(sizes)
    return given * dims if len(given) == 1 else given


def padding(call: Call, kernel: Sequence[int], dilation: Sequence[int]) -> tuple[list[int], list[int]]:
    """Of a convolution, before and after the elements of each dimension; a transposed one has less after."""
    given = call["padding"]
    if given == "same":  # an odd one is at the end
        total = [d * (k - 1) for k, d in zip(kernel, dilation, strict=True)]
        return [t // 2 for t in total], [t - t // 2 for t in total]
    pads = numbers(0 if given == "valid" else given, len(kernel))
    if not is_transposed(call):
        return pads, pads
    return pads, [pad - more for pad, more in zip(pads, numbers(call["output_padding"], len(kernel)), strict=True)]


def permuted(call: Call, x: Ref, dims: Sequence[int]) -> Ref:
    """The dimensions in another order; a view where only those of size 1 move."""
    shape = [x.shape[dim] for dim in dims]
    moved = [dim for dim in dims if not is_one(x.shape[dim])]
    if moved == sorted(moved):
        return call.view(x, shape)
    return call.emit("permute", x, list(dims), out=call.temp(x.dtype, shape))


def padded(call: Call, x: Ref, dim: int, before: int, after: int) -> Ref:
    """Zeros at both ends of a dimension; negative numbers cut off."""
    if before == 0 and after == 0:
        return x
    shape = [*x.shape[:dim], x.shape[dim] + before + after, *x.shape[dim + 1 :]]
    pads = [0, 0] * (x.rank - 1 - dim) + [before, after]
    return call.emit("pad", x, pads, 0.0, out=call.temp(x.dtype, shape))


def spread(call: Call, x: Ref, dim: int, stride: int) -> Ref:
    """Zeros after each element of a dimension, stride - 1 times."""
    if stride == 1:
        return x
    front, back = x.shape[: dim + 1], x.shape[dim + 1 :]
    apart = padded(call, call.view(x, [*front, 1, *back]), dim + 1, 0, stride - 1)
    return call.view(apart, [*front[:-1], plain(front[-1] * stride), *back])


def places(call: Call, count: Size, step: int, size: int, dilation: int = 1) -> Ref:
    """[count, size]: where the elements of windows lie along a dimension."""
    if isinstance(count, int):
        index = (torch.arange(count)[:, None] * step + torch.arange(size) * dilation).to(torch.int32)
        return call.constant(f"windows {count} {size} {step} {dilation}", DType.i32, (count, size), lambda: index)
    begins = call.emit("arange", 0, step, count, out=call.temp(DType.i64, [count]))
    inside = call.emit("arange", 0, dilation, size, out=call.temp(DType.i64, [size]))
    return call.emit("add", call.view(begins, [count, 1]), inside, 1.0, out=call.temp(DType.i64, [count, size]))


def windows(call: Call, x: Ref, dim: int, count: Size, size: int, step: int, dilation: int) -> Ref:
    """[.., count, size, ..] in the place of a dimension; nothing is copied where the windows are all of it in order."""
    shape = [*x.shape[:dim], count, size, *x.shape[dim + 1 :]]
    in_order = size == step and dilation == 1 and isinstance(count, int) and x.shape[dim] == count * size
    if in_order or (size == 1 and step == 1):
        return call.view(x, shape)
    index = places(call, count, step, size, dilation)
    return call.emit("index_select", x, index, dim, out=call.temp(x.dtype, shape))


def windows_of_convolution(
    call: Call, x: Ref, dim: int, count: Size, kernel: int, stride: int, dilation: int, pads: tuple[int, int]
) -> Ref:
    """Those that meet a kernel along `dim`. Of a transposed one there are zeros between the elements, and the kernel is
    to be reversed."""
    if not is_transposed(call):
        return windows(call, padded(call, x, dim, *pads), dim, count, kernel, stride, dilation)
    reach = dilation * (kernel - 1)
    x = padded(call, spread(call, x, dim, stride), dim, reach - pads[0], reach - pads[1] - (stride - 1))
    return windows(call, x, dim, count, kernel, 1, dilation)
