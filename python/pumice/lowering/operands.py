# SPDX-License-Identifier: Apache-2.0
"""What several lowerings need: axes, numbers as operands, broadcast shapes, which results are used."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import Any

import torch

from pumice.format.ir import DType
from pumice.lowering import sizes
from pumice.lowering.call import Call
from pumice.lowering.instead import VALUES
from pumice.lowering.ref import Ref

FLOATS = (DType.f32, DType.f16)
# ACT_* of glsl/include/math/activation.glslh.
ACTIVATIONS = {
    "none": 0, "relu": 1, "gelu": 2, "gelu_tanh": 3, "silu": 4, "relu6": 5, "hardswish": 6, "hardsigmoid": 7
}  # fmt: skip
GATE_ROWS = 16  # of a gate, then as many of what it is multiplied with: ops/fused_linear.cpp, ops/expert_linear.cpp
_RANGES = {
    DType.bool: range(2),
    DType.u8: range(256),
    DType.i8: range(-128, 128),
    DType.i32: range(-(2**31), 2**31),
    DType.i64: range(-(2**31), 2**31),  # 32 bits on the device
}
END = 2**63 - 1  # "to the end" as the end of a slice

Size = int | torch.SymInt


def axis(dim: int, rank: int) -> int:
    """A dimension counted from the front; a tensor of rank 0 has a dimension 0, as in PyTorch."""
    return dim % max(rank, 1)


def axes(dims: Iterable[int] | None, rank: int) -> list[int]:
    """Several of them; None and [] are all dimensions."""
    return sorted({axis(dim, rank) for dim in dims or range(rank)}) if rank else []


def argument(call: Call, name: str, default: Any = None) -> Any:
    """An argument that not every overload of the operator has."""
    return call[name] if any(known.name == name for known in call.target._schema.arguments) else default


def is_one(size: Size) -> bool:
    """Whether a size is 1 for every input; adds no guard."""
    return isinstance(size, int) and size == 1


def number(call: Call, value: Any, dtype: DType) -> int | float:
    """A Python number as an operand of tensors of `dtype`."""
    if dtype in FLOATS:
        return float(value)
    if value != value or value in (float("inf"), float("-inf")) or int(value) != value:
        call.refuse(f"the number {value} is not an integer, the tensors are {dtype.name}")
    if int(value) not in _RANGES[dtype]:
        call.refuse(f"the number {value} does not fit {dtype.name} as the device keeps it")
    return int(value)


def operand(call: Call, value: Any, dtype: DType) -> Any:
    """A tensor (cast to `dtype`), a size of the inputs (made a tensor), or a number."""
    if sizes.of_values(value):
        call.refuse(f"a number is read from a tensor (.item(), int() or float()): {VALUES}")
    if isinstance(value, torch.SymInt):
        value = call.view(call.emit("arange", value, 0, 1, out=call.temp(DType.i64, [1])), [])
    if isinstance(value, Ref):
        return call.cast(value, dtype)
    if isinstance(value, torch.SymFloat | torch.SymBool):
        call.refuse(
            f"{value} is computed from the sizes of the inputs and is no integer: give it as an input, or compute "
            "with integers (//)"
        )
    return number(call, value, dtype)


def shape_of(value: Any) -> tuple[Size, ...]:
    """The shape of an operand; () of a number."""
    return value.shape if isinstance(value, Ref) else ()


def numel(shape: Iterable[Size]) -> Size:
    """The number of elements."""
    count: Size = 1
    for size in shape:
        count = count * size
    return sizes.plain(count)


def fits_a_binding(shape: Sequence[Size]) -> bool:
    """Whether one binding is known to take such a tensor of numbers of up to four bytes on every device: 128 MiB."""
    most = sizes.largest(numel(shape))
    return most is not None and 4 * most <= 1 << 27


def broadcast(a: Sequence[Size], b: Sequence[Size]) -> list[Size]:
    """The shape two shapes broadcast to; that they do was checked by torch."""
    rank = max(len(a), len(b))
    a, b = [1] * (rank - len(a)) + list(a), [1] * (rank - len(b)) + list(b)
    return [y if is_one(x) else x for x, y in zip(a, b, strict=True)]


def unexpanded(call: Call, value: Any, others: Sequence[Any]) -> Any:
    """The tensor before an `expand` that broadcasting does anyway: some other operand has the whole shape."""
    aten = torch.ops.aten
    whole = any(sizes.same_shape(shape_of(other), call.out.shape) for other in others)
    if not whole or not isinstance(value, Ref):
        return value
    expand = call.producer(value, aten.expand.default, aten.expand_copy.default)
    return value if expand is None else expand.tensor("self")


def used_outputs(call: Call) -> list[int]:
    """The numbers of the results that other nodes read, of a node with several."""
    return sorted({user.args[1] for user in call.node.users if user.target is operator.getitem})
