# SPDX-License-Identifier: Apache-2.0
"""Numbers of operator calls that no tensor fits: each is refused by name when the file is checked, without a device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from support.one_call import OneCall

import pumice
from pumice.format import ir

pytestmark = pytest.mark.every  # what strangers send: each case in every run

F32, I64_MAX, BIG = torch.float32, (1 << 63) - 1, 1 << 31
Make = Callable[[], bytes]


def call(op: str, inputs: list[tuple[int, ...]], args: list[Any], out: tuple[int, ...], joined: bool = False) -> Make:
    """A file of one call: of inputs of these shapes (`joined`: as one list) and of `args`."""

    def make() -> bytes:
        b = OneCall()
        tensors = [b.input(F32, shape) for shape in inputs]
        b.call(op, [tensors, *args] if joined else [*tensors, *args], F32, out)
        return b.bytes()

    return make


def conv(kernel=(3, 3), stride=(1, 1), pads=(0, 0, 0, 0), dilation=(1, 1), groups=1, act=0, out=(1, 4, 6, 6)) -> Make:
    """conv2d of x [1, 4, 8, 8] by a weight of 4 channels that fits 3 x 3 kernels."""

    def make() -> bytes:
        b = OneCall()
        x, weight = b.input(F32, (1, 4, 8, 8)), b.constant(torch.ones(4, 36))
        numbers = [list(kernel), list(stride), list(pads), list(dilation), groups, False, act]
        b.call("conv2d", [x, weight, None, *numbers], F32, out)
        return b.bytes()

    return make


def pool(op="max_pool", kernel=(2, 2), stride=(2, 2), pads=(0, 0, 0, 0), dilation=(1, 1), more=(), out=(1, 4, 4, 4)):
    return call(op, [(1, 4, 8, 8)], [list(kernel), list(stride), list(pads), list(dilation), False, *more], out)


def sdpa(q=(1, 4, 5, 8), k=(1, 2, 7, 8), v=(1, 2, 7, 8), out=(1, 4, 5, 8)) -> Make:
    return call("sdpa", [q, k, v], [None, False, 0.5] + [False] * 4, out)


def sdpa_heads(first=(0, 4, 6), heads=4, kv_heads=2) -> Make:
    """Of 8 heads in all."""
    x = (1, 5, 8, 8)
    numbers = [None, False, 0.5, True, True, True, True, *first, heads, kv_heads]
    return call("sdpa_heads", [x, x, x], numbers, (1, 5, max(heads, 0), 8))


def cached(q=(1, 1, 32), k=(1, 1, 16), cache=(1, 2, 16, 8), heads=4, begin=(0, 0, 0), window=0) -> Make:
    """One row over caches of 16 positions; where it is written is data, and refused by the run (R14)."""

    def make() -> bytes:
        b = OneCall()
        x = [b.input(F32, shape) for shape in (q, k, k, cache, cache)]
        first = b.input(torch.int32, (1,))
        args = [*x, first] + [None] * 5 + [1e-6, heads, *begin, 0.5, window, 0.0]
        out = b.call("cached_attention", args, F32, (1, 1, max(heads, 0), 8))
        for shape in (cache, cache):
            name = f"c{len(b.method.outputs)}"
            b.method.values.append(ir.Value(ir.ValueKind.output, ir.DType.f32, list(shape), name=name))
            b.method.outputs.append(len(b.method.values) - 1)
        b.method.ops[0].outputs[:] = [out.index, *b.method.outputs[1:]]
        return b.bytes()

    return make


def embedding(rows: int, rank: int = 2) -> Make:
    def make() -> bytes:
        b = OneCall()
        weight = b.constant(torch.ones((rows, 6) if rank == 2 else (rows, 3, 2)))
        b.call("embedding", [weight, b.input(torch.int32, (5,))], F32, (5, 6))
        return b.bytes()

    return make


def product(op: str, weight: torch.dtype) -> Make:
    """A product of two rows of f32 with a weight of that dtype; of experts, two of 16 rows."""

    def make() -> bytes:
        b = OneCall()
        x, matrix = b.input(F32, (2, 8)), b.constant(torch.ones(32, 8, dtype=weight))
        if op == "linear":
            b.call(op, [x, matrix, None, 0, None], F32, (2, 32))
        elif op == "fused_linear":
            b.call(op, [x, None, 0.0, matrix, None, None, None, 0, 0, False], F32, (2, 32))
        else:
            chosen = b.input(torch.int32, (2, 1))
            b.call(op, [x, matrix, None, None, chosen, None, 2, 0, 0, False], F32, (2, 1, 16))
        return b.bytes()

    return make


VECTOR, MATRIX, IMAGE = (4,), (4, 6), (1, 4, 8, 8)
PRODUCTS = ("linear", "fused_linear", "expert_linear")

# id and what it is, the file, the code, a part of the message. Each operator's first line is right: only its number is
# wrong in the others.
CASES: list[tuple[str, Make, str, str]] = [
    ("G12 conv2d", conv(), "", ""),
    ("G12 stride 0", conv(stride=(0, 1)), "BadGraph", "stride has 0"),
    ("G12 stride negative", conv(stride=(1, -1)), "BadGraph", "stride has -1"),
    ("G12 dilation 0", conv(dilation=(1, 0)), "BadGraph", "dilation has 0"),
    ("G12 dilation huge", conv(dilation=(BIG, 1)), "BadGraph", "dilation has 2147483648"),
    ("G12 groups 0", conv(groups=0), "BadGraph", "in 0 groups"),
    ("G12 groups negative", conv(groups=-4), "BadGraph", "in -4 groups"),
    ("G12 groups do not divide", conv(groups=3), "BadGraph", "4 output channels in 3 groups"),
    ("G12 groups of other channels", conv(groups=2), "BadGraph", "x has 4 channels, not 8"),
    ("G12 kernel 0", conv(kernel=(0, 3)), "BadGraph", "kernel has 0"),
    ("G12 kernel of another weight", conv(kernel=(5, 3)), "BadGraph", "36 columns for a kernel of 5 x 3"),
    ("G12 one number", conv(kernel=(3,)), "BadGraph", "1 numbers for the kernel"),
    ("G12 kernel over the input", conv(dilation=(4, 1)), "BadGraph", "spans 9 does not fit a size of 8"),
    ("G12 pad 2^31", conv(pads=(BIG, 0, 0, 0)), "BadGraph", "padding has 2147483648"),
    ("G12 pad of 63 bits", conv(pads=(0, -I64_MAX, 0, 0)), "BadGraph", "padding has -9223372036854775807"),
    ("G12 unknown activation", conv(act=77), "BadGraph", "activation 77 is not in 0..7"),
    ("G12 max_pool", pool(), "", ""),
    ("G12 pool stride 0", pool(stride=(2, 0)), "BadGraph", "stride has 0"),
    ("G12 pool dilation 0", pool(dilation=(0, 1)), "BadGraph", "dilation has 0"),
    ("G12 pool kernel over the input", pool(kernel=(9, 1)), "BadGraph", "spans 9 does not fit a size of 8"),
    ("G12 pool pad 2^31", pool(pads=(0, 0, 0, BIG)), "BadGraph", "padding has 2147483648"),
    *((f"G12 {op}", product(op, F32), "", "") for op in PRODUCTS),
    *(
        (f"G12 {op} of another weight", product(op, torch.float16), "BadGraph", f"{op}: x is f32, the weight f16")
        for op in PRODUCTS
    ),
    ("G12 pool cut to nothing", pool(pads=(-4, 0, -4, 0)), "BadGraph", "does not fit a size of 8 padded by -8"),
    ("G12 avg_pool", pool("avg_pool", more=(True, None)), "", ""),
    ("G12 divisor 0", pool("avg_pool", more=(True, 0)), "BadGraph", "the divisor is 0"),
    ("G13 view", call("view", [MATRIX], [[8, -1]], (8, 3)), "", ""),
    ("G13 another count", call("view", [MATRIX], [[5, 5]], (5, 5)), "BadGraph", "24 elements seen as 25"),
    ("G13 -1 twice", call("view", [MATRIX], [[-1, -1]], (4, 6)), "BadGraph", "size -1 in dimension 1"),
    ("G13 -1 that is no integer", call("view", [MATRIX], [[5, -1]], (5, 4)), "BadGraph", "24 elements seen as 20"),
    ("G13 size -2", call("view", [MATRIX], [[-2, -12]], (4, 6)), "BadGraph", "size -2"),
    ("G13 sizes overflow", call("view", [MATRIX], [[BIG - 1] * 3], (4, 6)), "BadGraph", "overflow"),
    ("G13 permute", call("permute", [MATRIX], [[1, -2]], (6, 4)), "", ""),
    ("G13 axis twice", call("permute", [MATRIX], [[0, 0]], (4, 4)), "BadGraph", "no permutation"),
    ("G13 axis missing", call("permute", [MATRIX], [[0]], (4,)), "BadGraph", "no permutation"),
    ("G13 patches", call("patches", [IMAGE], [[4, 2], 1, False], (1, 9, 32)), "", ""),
    ("G13 patches of 0", call("patches", [IMAGE], [[4, 0], 0, False], (1, 8, 32)), "BadGraph", "at least 1"),
    ("G13 patches of 3 sizes", call("patches", [IMAGE], [[4, 2, 1], 0, False], (1, 8, 32)), "BadGraph", "two sizes"),
    ("G13 no whole patches", call("patches", [IMAGE], [[3, 2], 0, False], (1, 8, 24)), "BadGraph", "8 x 8 is no whole"),
    ("G13 patches of 63 bits", call("patches", [IMAGE], [[I64_MAX, 2], 0, False], (1, 8, 8)), "BadGraph", "no whole"),
    ("G13 zeros negative", call("patches", [IMAGE], [[4, 2], -1, False], (1, 7, 32)), "BadGraph", "-1 rows of zeros"),
    (
        "G13 zeros of 63 bits",
        call("patches", [IMAGE], [[4, 2], I64_MAX, False], (1, 9, 32)),
        "BadGraph",
        "rows of zeros",
    ),
    ("G13 patches of a matrix", call("patches", [MATRIX], [[2, 2], 0, False], (1, 6, 4)), "BadGraph", "rank 4, not 2"),
    ("G13 zeros of two", call("patches", [(2, 4, 8, 8)], [[4, 2], 1, False], (2, 9, 32)), "BadGraph", "of one image"),
    (
        "G13 zeros of odd rows",
        call("patches", [(1, 3, 4, 4)], [[1, 1], 1, False], (1, 17, 3)),
        "BadGraph",
        "whole vec4",
    ),
    ("G13 slice", call("slice", [MATRIX], [1, 0, 6, 2], (4, 3)), "", ""),
    ("G13 step 0", call("slice", [MATRIX], [1, 0, 6, 0], (4, 6)), "BadGraph", "step 0 must be positive"),
    ("G13 step negative", call("slice", [MATRIX], [1, 0, 6, -1], (4, 6)), "BadGraph", "step -1"),
    ("G13 cat", call("cat", [MATRIX, (4, 1)], [1], (4, 7), joined=True), "", ""),
    ("G13 cat of other sizes", call("cat", [MATRIX, (3, 6)], [1], (4, 12), joined=True), "BadGraph", "input 1 differs"),
    ("G13 cat of other ranks", call("cat", [MATRIX, VECTOR], [0], (8, 6), joined=True), "BadGraph", "rank 1, expected"),
    ("G13 cat of nothing", call("cat", [], [0], (4,), joined=True), "BadGraph", "no input"),
    ("G13 select", call("select", [MATRIX], [0, -4], (6,)), "", ""),
    ("G13 select beyond", call("select", [MATRIX], [0, 4], (6,)), "BadGraph", "index 4 is outside of 4"),
    ("G13 expand", call("expand", [(1, 6)], [[4, -1]], MATRIX), "", ""),
    ("G13 expand of no 1", call("expand", [MATRIX], [[8, 6]], (8, 6)), "BadGraph", "size 4 cannot become 8"),
    ("G13 repeat negative", call("repeat", [MATRIX], [[-1, 1]], (0, 6)), "BadGraph", "-1 times"),
    ("G17 sdpa", sdpa(), "", ""),
    ("G17 heads not dividing", sdpa(k=(1, 3, 7, 8), v=(1, 3, 7, 8)), "BadGraph", "3 heads of k do not divide 4"),
    ("G17 no heads", sdpa(k=(1, 0, 7, 8), v=(1, 0, 7, 8)), "BadGraph", "0 heads of k"),
    ("G17 head of 0", sdpa(q=(1, 4, 5, 0), k=(1, 2, 7, 0)), "BadGraph", "a query has 0 elements"),
    ("G17 heads of two sizes", sdpa(k=(1, 2, 7, 6)), "BadGraph", "a query has 8 elements, a key 6"),
    ("G17 k and v", sdpa(v=(1, 2, 6, 8)), "BadGraph", "k and v differ"),
    ("G17 batches", sdpa(k=(2, 2, 7, 8)), "BadGraph", "batches of 1, 2 and 1"),
    ("G17 sdpa_heads", sdpa_heads(), "", ""),
    ("G17 first head negative", sdpa_heads((0, -1, 6)), "BadGraph", "2 heads from number -1 on, of a tensor of 8"),
    ("G17 first head beyond", sdpa_heads((0, 4, 7)), "BadGraph", "2 heads from number 7 on, of a tensor of 8"),
    ("G17 first head of 63 bits", sdpa_heads((I64_MAX, 4, 6)), "BadGraph", "4 heads from number 9223372036854775807"),
    ("G17 no heads of a slice", sdpa_heads(heads=0), "BadGraph", "0 heads from number 0 on"),
    ("G17 heads of 63 bits", sdpa_heads(kv_heads=I64_MAX), "BadGraph", "9223372036854775807 heads from number 4 on"),
    ("G17 slices of 3 and 2", sdpa_heads(heads=3), "BadGraph", "2 heads of k do not divide 3"),
    ("G17 cached_attention", cached(), "", ""),
    ("G17 cached heads 0", cached(heads=0), "BadGraph", "2 heads of the caches do not divide 0"),
    ("G17 cached heads negative", cached(heads=-4), "BadGraph", "do not divide -4"),
    ("G17 cached heads not dividing", cached(heads=3), "BadGraph", "do not divide 3"),
    ("G17 cached heads of 0", cached(cache=(1, 2, 16, 0)), "BadGraph", "heads of 0 elements"),
    ("G17 more rows than positions", cached(cache=(1, 2, 0, 8)), "BadGraph", "1 rows for caches of 0"),
    ("G17 begin negative", cached(begin=(-1, 0, 0)), "BadGraph", "from element -1 on"),
    ("G17 begin beyond", cached(begin=(0, 4, 0)), "BadGraph", "from element 4 on are not in rows of 16 of k"),
    ("G17 begin of 63 bits", cached(begin=(I64_MAX - 3, 0, 0)), "BadGraph", "from element 9223372036854775804 on"),
    ("G17 window negative", cached(window=-1), "BadGraph", "window of -1"),
    ("G18 embedding", embedding(3), "", ""),
    ("G18 no rows", embedding(0), "BadGraph", "no rows"),
    ("G18 embedding of rank 3", embedding(4, rank=3), "BadGraph", "rank 2"),
    ("G18 softmax", call("softmax", [MATRIX], [-1], MATRIX), "", ""),
    ("G18 axis beyond the rank", call("softmax", [MATRIX], [2], MATRIX), "BadGraph", "axis 2 is outside of rank 2"),
    ("G18 axis below the rank", call("softmax", [MATRIX], [-3], MATRIX), "BadGraph", "axis -3 is outside of rank 2"),
    (
        "G18 axis of 63 bits",
        call("softmax", [MATRIX], [-I64_MAX - 1], MATRIX),
        "BadGraph",
        "axis -9223372036854775808 is",
    ),
    ("G18 axis of a scalar", call("cat", [(), ()], [0], (2,), joined=True), "BadGraph", "axis 0 is outside of rank 0"),
    ("G18 axis of slice", call("slice", [MATRIX], [2, 0, 6, 1], MATRIX), "BadGraph", "axis 2 is outside of rank 2"),
    ("G18 axis of flip", call("flip", [MATRIX], [[0, 5]], MATRIX), "BadGraph", "axis 5 is outside of rank 2"),
]


@pytest.mark.parametrize(("make", "code", "part"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_what_fits_no_tensor_is_refused_by_name(make, code, part) -> None:
    data = make()
    if not code:
        pumice.check(data)
        return
    with pytest.raises(pumice.InvalidFileError) as caught:
        pumice.check(data)
    error = caught.value
    assert (error.code, error.path.split(" ")[0]) == (code, "methods[0].ops[0]"), error
    assert part in str(error), error
