# SPDX-License-Identifier: Apache-2.0
"""Programs of one call, for operators whose tests load nothing as small: seeds of fuzz_execute (op_seeds.py)."""

from __future__ import annotations

from typing import Any

import torch

from pumice.format import ir
from support.one_call import OneCall

F32, I8, I32 = torch.float32, torch.int8, torch.int32
WINDOW = [[3, 3], [1, 1], [1, 1, 1, 1], [1, 1], 1, False, 0]


def _floats(*shape: int) -> torch.Tensor:
    return torch.linspace(-1, 1, max(1, torch.Size(shape).numel())).reshape(shape)


def _bytes(*shape: int) -> torch.Tensor:
    return (torch.arange(torch.Size(shape).numel()) % 13 - 6).to(I8).reshape(shape)


def _single(
    name: str, inputs: list[tuple[torch.dtype, tuple[int, ...]]], args: list[Any], out: tuple[int, ...]
) -> bytes:
    b = OneCall()
    b.call(name, [b.input(*each) for each in inputs] + args, inputs[0][0], out)
    return b.bytes()


def _conv(name: str, x_dtype: torch.dtype, out: torch.dtype, more: list[Any]) -> bytes:
    b = OneCall()
    x = b.input(x_dtype, (1, 2, 6, 5))
    if name == "conv2d":
        weight = [b.constant(_floats(4, 18)), b.constant(_floats(4))]
    else:
        weight = [b.constant(_bytes(4, 18)), b.constant(_floats(4, 1).abs() + 0.1), None, b.constant(_floats(4))]
    b.call(name, [x, *weight, *WINDOW, *more], out, (1, 4, 6, 5))
    return b.bytes()


def _attention(name: str, int8: bool) -> bytes:
    b = OneCall()
    q, k, v = (b.input(F32, (1, 1, size)) for size in (32, 16, 16))
    caches = [b.input(I8 if int8 else F32, (1, 2, 6, 8)) for _ in range(2)]
    first = b.input(I32, (1,))
    angles = 4 if "interleaved" in name else 8
    cos, sin = b.constant(_floats(6, angles)), b.constant(_floats(6, angles))
    args = [q, k, v, *caches, first, cos, sin, None, None, None, 1e-6, 4, 0, 0, 0, 0.5, 0, 0.0]
    if int8:
        args.append(b.input(F32, (1, 2, 6, 2)))
    out = b.call(name, args, F32, (1, 1, 4, 8))
    dtype = ir.DType.i8 if int8 else ir.DType.f32
    more = [(dtype, [1, 2, 6, 8])] * 2 + [(ir.DType.f32, [1, 2, 6, 2])] * int8
    for index, (each, dims) in enumerate(more):
        b.method.values.append(ir.Value(ir.ValueKind.output, each, dims, name=f"cache{index}"))
        b.method.outputs.append(len(b.method.values) - 1)
    b.method.ops[0].outputs[:] = [out.index, *b.method.outputs[1:]]
    return b.bytes()


def _expert_linear() -> bytes:
    b = OneCall()
    x, weight, chosen = b.input(F32, (3, 8)), b.constant(_floats(64, 8)), b.input(I32, (3, 2))
    b.call("expert_linear", [x, weight, None, None, chosen, None, 4, 0, 0, False], F32, (3, 2, 16))
    return b.bytes()


def _fused_linear() -> bytes:
    b = OneCall()
    x, norm, weight = b.input(F32, (3, 8)), b.constant(_floats(8)), b.constant(_floats(8, 8))
    b.call("fused_linear", [x, norm, 1e-6, weight, None, None, None, 0, 0, False], F32, (3, 8))
    return b.bytes()


def _squeeze_excite() -> bytes:
    b = OneCall()
    x, weight1, bias1 = b.input(F32, (3, 6)), b.constant(_floats(2, 6)), b.constant(_floats(2))
    b.call("squeeze_excite", [x, weight1, bias1, b.constant(_floats(6, 2)), None, 4, 0], F32, (3, 6))
    return b.bytes()


def _linear_q8ta() -> bytes:
    b = OneCall()
    x, weight, scale = b.input(F32, (3, 8)), b.constant(_bytes(4, 8)), b.constant(_floats(4, 1).abs() + 0.1)
    b.call("linear_q8ta_q8csw", [x, weight, scale, None, None, 0, None, 0.02, 3, -128, 127], F32, (3, 4))
    return b.bytes()


def _linear_qta8a() -> bytes:
    b = OneCall()
    x, x_scale, x_zero = b.input(I8, (3, 32)), b.input(F32, (3, 1)), b.input(I8, (3, 1))
    weight, scale = b.constant(_bytes(4, 32).clamp(-8, 7), ir.DType.i4), b.constant(_floats(4, 1).abs() + 0.1)
    out_scale, out_zero = b.input(F32, (3, 1)), b.input(I8, (3, 1))
    args = [x, x_scale, x_zero, weight, scale, None, None, 32, out_scale, out_zero]
    b.call("linear_qta8a_qga4w_qta8o", args, I8, (3, 4))
    return b.bytes()


def _elementwise_chain() -> bytes:
    b = OneCall()
    x = [b.input(F32, (2, 3)), b.input(F32, (3,))]
    steps = [21, 8, 9, 0, 2, 0, 0, 0, 19, 1, 16, 0]  # tanh(x0 * x1) + n0
    b.call("elementwise_chain", [x, None, steps, 0.5, *[None] * 7], F32, (2, 3))
    return b.bytes()


def _masked_softmax() -> bytes:
    b = OneCall()
    x, mask = b.input(F32, (2, 3)), b.input(F32, (3,))
    b.call("masked_softmax", [x, None, 2.0, mask, None, True, None], F32, (2, 3))
    return b.bytes()


def seeds() -> dict[str, bytes]:
    """The files, by operator."""
    return {
        "div_trunc": _single("div_trunc", [(F32, (2, 3)), (F32, (3,))], [], (2, 3)),
        "repeat": _single("repeat", [(F32, (2, 3))], [[2, 1]], (4, 3)),
        "group_norm": _single("group_norm", [(F32, (2, 6, 5))], [3, None, None, 1e-5], (2, 6, 5)),
        "norm": _single("norm", [(F32, (4, 6))], [[1], False], (4,)),
        "gelu_tanh": _single("gelu_tanh", [(F32, (3, 5))], [], (3, 5)),
        "index_add": _single("index_add", [(F32, (6, 8)), (I32, (3,)), (F32, (3, 8))], [0], (6, 8)),
        "conv2d": _conv("conv2d", F32, F32, []),
        "conv2d_q8csw": _conv("conv2d_q8csw", F32, F32, []),
        "conv2d_q8ta_q8csw": _conv("conv2d_q8ta_q8csw", I8, F32, [0.02, 3]),
        "q8ta_conv2d": _conv("q8ta_conv2d", I8, I8, [0.02, 3, 0.05, -2, -128, 127]),
        "cached_attention_interleaved": _attention("cached_attention_interleaved", int8=False),
        "cached_attention_int8": _attention("cached_attention_int8", int8=True),
        "cached_attention_int8_interleaved": _attention("cached_attention_int8_interleaved", int8=True),
        "expert_linear": _expert_linear(),
        "fused_linear": _fused_linear(),
        "squeeze_excite": _squeeze_excite(),
        "elementwise_chain": _elementwise_chain(),
        "masked_softmax": _masked_softmax(),
        "linear_q8ta_q8csw": _linear_q8ta(),
        "linear_qta8a_qga4w_qta8o": _linear_qta8a(),
    }
