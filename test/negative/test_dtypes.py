# SPDX-License-Identifier: Apache-2.0
"""A file that gives a tensor another dtype than its operator takes or makes is refused.

Of every seed of fuzz_execute, and so of every operator: each input, output and scratch value in turn gets each other
dtype. What loads nevertheless is in ALSO: kernels for it exist. i32 and i64 stand for each other everywhere, as both
are 32 bits on the device."""

from __future__ import annotations

from collections import defaultdict

from support.op_seeds import SEEDS
from support.read_program import read_program

import pumice
from pumice.format.ir import DType, Method, ValueId, ValueKind
from pumice.format.writer import to_bytes

FLOATS, BYTES, INTEGERS = "f16 f32", "i8 u8", "i8 u8 i32 i64"
ALL = f"bool {FLOATS} {INTEGERS}"
# Of an argument (1, ...) or a result (out1): the dtypes of its kernels where the other arguments are as they are.
ALSO = {
    # From any dtype to bool or to a position.
    "all 0": ALL,
    "any 0": ALL,
    "argmax 0": ALL,
    "argmin 0": ALL,
    "cast 0": ALL,
    # With numbers, which take the tensor's dtype.
    "le 0": ALL,
    "logical_or 0": ALL,
    "ne 0": ALL,
    "ne 1": ALL,
    "full out0": ALL,
    # Sums of small integers and of bool.
    "prod 0": f"bool {INTEGERS}",
    "sum 0": f"bool {INTEGERS}",
    # Masks: bool, or the queries' dtype.
    "sdpa 3": f"bool {FLOATS}",
    "sdpa_heads 3": f"bool {FLOATS}",
    # Between floats and integers. Zero points may be floats in torchao.
    "choose_qparams 0": FLOATS,
    "choose_qparams out0": FLOATS,
    "choose_qparams out1": f"f32 {INTEGERS}",
    "quantize 0": FLOATS,
    "quantize 1": FLOATS,
    "quantize 2": f"{FLOATS} {INTEGERS}",
    "quantize out0": INTEGERS,
    "dequantize 0": INTEGERS,
    "dequantize 1": FLOATS,
    "dequantize 2": f"{FLOATS} {INTEGERS}",
    "dequantize out0": FLOATS,
    # Integers of either kind with numbers for scale and zero point.
    "conv2d_q8ta_q8csw 0": BYTES,
    "conv2d_q8ta_q8csw out0": FLOATS,
    "linear_q8ta_q8csw 0": f"f32 {BYTES}",
    "lookup 0": BYTES,
    "q8ta_conv2d 0": BYTES,
    "q8ta_linear 0": BYTES,
    "linear_qta8a_qga4w_qta8o 1": FLOATS,
    "linear_qta8a_qga4w_qta8o 2": INTEGERS,
    "linear_qta8a_qga4w_qta8o 8": FLOATS,
    "linear_qta8a_qga4w_qta8o 9": INTEGERS,
    # Rows of a quantized weight, as either kind of floats.
    "embedding_q4gsw out0": FLOATS,
    "embedding_q8gsw out0": FLOATS,
    # Logits.
    "route_experts 0": FLOATS,
    "sample_token 0": FLOATS,
}


def places(method: Method, value: int) -> list[str]:
    """Where calls read and write it: "add 1", "add out0"."""
    found = []
    for call in method.ops:
        for index, arg in enumerate(call.args):
            if ValueId(value) in (arg if isinstance(arg, list) else [arg]):
                found.append(f"{call.op} {index}")
        found += [f"{call.op} out{index}" for index, output in enumerate(call.outputs) if output == value]
    return found


def is_known(place: str, dtype: DType, was: DType) -> bool:
    return {dtype, was} == {DType.i32, DType.i64} or dtype.name in ALSO.get(place, "").split()


def test_another_dtype_is_refused() -> None:
    tried, taken = 0, defaultdict(set)
    for seed in sorted(SEEDS.iterdir()):
        program = read_program(seed.read_bytes())
        for method in program.methods:
            method.in_spec = method.out_spec = ""
        pumice.load(to_bytes(program))
        for method in program.methods:
            for index, value in enumerate(method.values):
                of_value = places(method, index)
                if not of_value or value.kind in (ValueKind.constant, ValueKind.state):
                    continue
                was = value.dtype
                for value.dtype in set(DType) - {was}:
                    tried += 1
                    try:
                        pumice.load(to_bytes(program))
                    except pumice.Error:
                        continue
                    if not all(is_known(place, value.dtype, was) for place in of_value):
                        taken[seed.name, " and ".join(of_value), was.name].add(value.dtype.name)
                value.dtype = was
    assert tried > 5000
    assert not taken
