# SPDX-License-Identifier: Apache-2.0
"""What a quantize node with one scale and zero point can compute from integers, so that a network between its first
quantize node and its last dequantize node has no floats: all between the dequantize nodes before it and itself becomes

    a move of integers (views, permutations, cat, pad, largest elements, nearest ones), exact
    a table of 256 results of any chain of functions of one element, computed by PyTorch itself, exact
    an operator on integers: convolution, add, mul, means, bilinear upsampling

`plan` says how, or None; nothing is emitted before all of it is known to work.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch.fx import Node

from pumice.convolution import BATCH_NORMS, PADS, convolution_before, per_tensor
from pumice.dtypes import TORCH
from pumice.ir import DType
from pumice.layer import ACTIVATIONS
from pumice.op import Refused
from pumice.operands import axes, axis
from pumice.ops import pad, pool2d, upsample2d
from pumice.ops.clamp import CLAMPS
from pumice.ops.unary import ELEMENTWISE
from pumice.passes import quant
from pumice.permuted import PERMUTES, permutation
from pumice.quantized_activation import QUANTIZE_NUMBERS, VIEWS, is_number_pair

if TYPE_CHECKING:
    from pumice.lower import Call, Ref
    from pumice.passes.quant import Q

aten = torch.ops.aten

Step = Callable[["Ref"], Any]  # emits operator calls that write a tensor

_WITH_NUMBER = (
    aten.add.Tensor, aten.add.Scalar, aten.sub.Tensor, aten.sub.Scalar, aten.mul.Tensor, aten.mul.Scalar,
    aten.div.Tensor, aten.div.Scalar, aten.pow.Tensor_Scalar,
)  # fmt: skip
_FUNCTIONS = (*ELEMENTWISE, *CLAMPS, *_WITH_NUMBER, aten.leaky_relu.default, aten.elu.default)
_ARITHMETIC = {aten.add.Tensor: "q8ta_add", aten.mul.Tensor: "q8ta_mul"}
_SHUFFLES = (aten.pixel_shuffle.default, aten.pixel_unshuffle.default)


@dataclass(frozen=True)
class Target:
    """The integers of a quantize node `made`."""

    made: Call
    dtype: DType

    @property
    def numbers(self) -> tuple:
        """As q8ta operators end with them."""
        made = self.made
        return float(made["scale"]), int(made["zero_point"]), int(made["quant_min"]), int(made["quant_max"])

    def holds(self, q: Q) -> bool:
        """Whether integers of `q` are these as they are: one that might have to be clamped is not."""
        whole = (-128, 127) if self.dtype is DType.i8 else (0, 255)
        same = (float(q.scale), int(q.zero), q.qmin, q.qmax) == self.numbers and (q.qmin, q.qmax) == whole
        return same and q.data.dtype is self.dtype

    def quantized(self, value: torch.Tensor) -> torch.Tensor:
        node = self.made.node
        return node.target(value, *node.args[1:], **node.kwargs)


def plan(quantize: Call) -> Step | None:
    """Of a quantize node: how to write its integers, if that needs no floats."""
    out = quantize.out
    if str(quantize.target) != QUANTIZE_NUMBERS or not is_number_pair(quantize["scale"], quantize["zero_point"], out):
        return None
    return _plan(quantize, quantize.tensor("input"), Target(quantize, out.dtype))


def _plan(call: Call, ref: Ref, to: Target) -> Step | None:
    return _table(call, ref, to) or _move(call, ref, to) or _computed(call, ref, to)


# ---- tables --------------------------------------------------------------------------------------------------------


def _table(call: Call, ref: Ref, to: Target) -> Step | None:
    chain: list[Node] = []
    while (made := call.producer(ref, *_FUNCTIONS)) is not None and _of_one(made.node):
        chain.append(made.node)
        call, ref = made, made[made.target._schema.arguments[0].name]
    q = per_tensor(call, ref)
    if q is None:
        return None
    if not chain and to.holds(q):
        return lambda out: call.emit("view", q.data, list(out.shape), out=out)
    steps = [call.producer(ref, *quant.DEQUANTIZE).node, *reversed(chain)]

    def table() -> torch.Tensor:
        value = torch.arange(256, dtype=torch.uint8)
        value = value.view(torch.int8) if q.data.dtype is DType.i8 else value
        for node in steps:
            value = node.target(value, *node.args[1:], **node.kwargs)
        return to.quantized(value)

    what = [(str(node.target), node.args[1:], dict(node.kwargs)) for node in (*steps, to.made.node)]
    constant = call.constant(f"table {what}", to.dtype, (256,), table)
    return lambda out: call.emit("lookup", q.data, constant, out=out)


def _of_one(node: Node) -> bool:
    """Whether a node is a function of its first argument and of numbers."""
    others = [*node.args[1:], *node.kwargs.values()]
    return isinstance(node.args[0], Node) and all(o is None or isinstance(o, int | float | str) for o in others)


# ---- moves ---------------------------------------------------------------------------------------------------------


def _move(call: Call, ref: Ref, to: Target) -> Step | None:
    made = call.producer(ref, *_MOVES)
    if made is None:
        return None
    try:
        emit = _MOVES[made.target](made, to)
    except Refused:
        return None
    name = made.target._schema.arguments[0].name
    inputs = made[name] if name == "tensors" else [made[name]]
    befores = [_plan(made, before, to) for before in inputs]
    if emit is None or not inputs or any(before is None for before in befores):
        return None

    def step(out: Ref) -> None:
        moved = []
        for before, given in zip(befores, inputs, strict=True):
            moved.append(made.temp(to.dtype, given.shape))
            before(moved[-1])
        emit(moved, out)

    return step


def _viewed(made: Call, _: Target) -> Any:
    return lambda x, out: made.emit("view", x[0], list(out.shape), out=out)


def _permuted(made: Call, _: Target) -> Any:
    return lambda x, out: made.emit("permute", x[0], permutation(made), out=out)


def _joined(made: Call, _: Target) -> Any:
    rank = made.out.rank
    if any(x.rank != rank for x in made["tensors"]):
        return None
    return lambda x, out: made.emit("cat", x, axis(made["dim"], rank), out=out)


def _padded(made: Call, to: Target) -> Any:
    if made.target is aten.pad.default and made["mode"] != "constant":
        return None
    if pad.moves_nothing(made):
        return _viewed(made, to)
    value = int(to.quantized(torch.tensor(float(made["value"] or 0), dtype=TORCH[made.out.dtype])))
    return lambda x, out: made.emit("pad", x[0], made["pad"], value, out=out)


def _largest(made: Call, _: Target) -> Any:
    if made.target is aten.max_pool2d_with_indices.default and any(u.args[1] != 0 for u in _getitems(made)):
        return None
    window = pool2d.window(made)
    return lambda x, out: pool2d.emit(made, "max_pool2d", x[0], *window, out=out)


def _nearest(made: Call, _: Target) -> Any:
    factors = upsample2d.factors(made)
    return lambda x, out: made.emit("upsample2d", x[0], list(out.shape[-2:]), *factors, 0, out=out)


def _shuffled(made: Call, _: Target) -> Any:
    return lambda x, out: upsample2d.shuffle(made, x[0], out)


def _getitems(made: Call) -> list[Node]:
    return [user for user in made.node.users if user.target is operator.getitem]


# What takes elements to other places, or leaves out smaller ones: it may as well be done with their integers.
_MOVES: dict[Any, Callable[[Call, Target], Any]] = {
    **dict.fromkeys(VIEWS, _viewed),
    **dict.fromkeys(PERMUTES, _permuted),
    aten.cat.default: _joined,
    **dict.fromkeys(PADS, _padded),
    **dict.fromkeys(pool2d.MAXIMA, _largest),
    **dict.fromkeys(upsample2d.NEAREST, _nearest),
    **dict.fromkeys(_SHUFFLES, _shuffled),
}


# ---- operators -----------------------------------------------------------------------------------------------------


def _computed(call: Call, ref: Ref, to: Target) -> Step | None:
    if ref.dtype is not DType.f32:  # PyTorch rounds every step to fp16
        return None
    act = "none"
    for target, name in ((aten.relu.default, "relu"), (aten.relu6.default, "relu6"), (aten.hardtanh.default, "relu6")):
        made = call.producer(ref, target, single_use=True)
        if made is not None and (target is not aten.hardtanh.default or (made["min_val"], made["max_val"]) == (0, 6)):
            call, ref, act = made, made.tensor("self"), name
            break
    return (
        _convolved(call, ref, act, to)
        or _arithmetic(call, ref, act, to)
        or (_mean(call, ref, to) or _between(call, ref, to) if act == "none" else None)
    )


def _convolved(call: Call, ref: Ref, act: str, to: Target) -> Step | None:
    conv = None if call.producer(ref, *BATCH_NORMS) is not None else convolution_before(call, ref)
    source = conv.source() if conv is not None else None
    q = conv.call.quantized(conv.weight) if source is not None else None
    if q is None:
        return None
    try:
        weight = conv.integers(q)
    except Refused:
        return None
    return lambda out: conv.emit_integers("q8ta_conv2d", source, weight, act, to.numbers, out)


def _arithmetic(call: Call, ref: Ref, act: str, to: Target) -> Step | None:
    made = call.producer(ref, *_ARITHMETIC, single_use=True)
    if made is None or (made.target is aten.add.Tensor and made["alpha"] != 1):
        return None
    sides = [_operand(made, made[name], to) for name in ("self", "other")]
    if any(side is None for side in sides):
        return None
    a, b = sides
    numbers = (float(a.scale), int(a.zero), float(b.scale), int(b.zero), ACTIVATIONS[act], *to.numbers)
    return lambda out: made.emit(_ARITHMETIC[made.target], a.data, b.data, *numbers, out=out)


def _operand(made: Call, value: Any, to: Target) -> Q | None:
    """Integers, constant ones included (a number that was quantized)."""
    q = made.quantized(value) if hasattr(value, "identity") else None
    known = q is not None and q.kind == "tensor" and is_number_pair(q.scale, q.zero, q.data)
    return q if known and q.data.dtype is to.dtype else None


def _mean(call: Call, ref: Ref, to: Target) -> Step | None:
    made = call.producer(ref, *pool2d.MEANS, *pool2d.ADAPTIVE, aten.mean.dim, single_use=True)
    x = made.tensor("self") if made is not None else None
    q = per_tensor(made, x) if made is not None else None
    if q is None or q.data.dtype is not to.dtype:
        return None
    numbers = (float(q.scale), int(q.zero), *to.numbers)
    if made.target in pool2d.MEANS:
        window = (*pool2d.window(made), *pool2d.tail(made))
        return lambda out: pool2d.emit(made, "q8ta_avg_pool2d", q.data, *window, *numbers, out=out)
    if made.target in pool2d.ADAPTIVE:
        return lambda out: pool2d.emit(made, "q8ta_adaptive_avg_pool2d", q.data, pool2d.size(made), *numbers, out=out)
    rank = x.rank
    if rank < 3 or axes(made["dim"], rank) != [rank - 2, rank - 1]:
        return None
    shape = [*x.shape[:-2], 1, 1]

    def step(out: Ref) -> None:
        mean = made.emit("q8ta_adaptive_avg_pool2d", q.data, [1, 1], *numbers, out=made.temp(to.dtype, shape))
        made.emit("view", mean, list(out.shape), out=out)

    return step


def _between(call: Call, ref: Ref, to: Target) -> Step | None:
    made = call.producer(ref, *upsample2d.BILINEAR, single_use=True)
    x = upsample2d.image(made) if made is not None else None
    q = per_tensor(made, x) if made is not None else None
    if q is None or q.data.dtype is not to.dtype:
        return None
    aligned, last = bool(made["align_corners"]), upsample2d.is_channels_last(made)
    numbers = (*upsample2d.factors(made), aligned, last, float(q.scale), int(q.zero), *to.numbers)
    return lambda out: made.emit("q8ta_upsample2d", q.data, list(out.shape[-2:]), *numbers, out=out)
