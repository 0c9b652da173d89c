# SPDX-License-Identifier: Apache-2.0
"""One view of every dequantize node that torchao and PT2E write: real = (data - zero) * scale.

Nothing is assumed of the zero points: a symmetric and an asymmetric weight have the same graph.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from pumice.ir import DType

if TYPE_CHECKING:
    from pumice.lower import Call, Ref


@dataclass(frozen=True)
class Q:
    """kind "block": one scale for each block of `block` elements (PerAxis(0) is block [1, K]); "channel": one for each
    index of `axis`; "tensor": one; "token": one for each index of all dimensions but the last."""

    kind: str
    data: Ref
    scale: Ref | float
    zero: Ref | float | int | None
    qmin: int
    qmax: int
    out_dtype: DType
    axis: int | None = None
    block: list[int] | None = None


def is_dequantize(target: Any) -> bool:
    return str(target) in _VIEWS


def is_choose_qparams(target: Any) -> bool:
    return "choose_qparams" in str(target)


def quantized(call: Call) -> Q | None:
    """The view of the node of `call`, or None when it does not dequantize."""
    view = _VIEWS.get(str(call.target))
    return view(call) if view else None


def _limits(call: Call, dtype: str) -> tuple[int, int]:
    """qmin, qmax; absent ones are the range of the integer type."""
    info = torch.iinfo(call[dtype])
    low, high = call["quant_min"], call["quant_max"]
    return (info.min if low is None else int(low)), (info.max if high is None else int(high))


def _affine(call: Call) -> Q:
    low, high = _limits(call, "input_dtype")
    block = [int(size) for size in call["block_size"]]
    return Q(
        "block",
        call["input"],
        call["scale"],
        call["zero_point"],
        low,
        high,
        call.dtype_of(call["output_dtype"]),
        block=block,
    )


def _out_dtype(call: Call) -> DType:
    return call.dtype_of(call["out_dtype"] or torch.float32)


def _channel(call: Call) -> Q:
    low, high = _limits(call, "dtype")
    data = call["input"]
    return Q(
        "channel", data, call["scales"], call["zero_points"], low, high, _out_dtype(call), axis=call["axis"] % data.rank
    )


def _tensor(call: Call) -> Q:
    low, high = _limits(call, "dtype")
    return Q("tensor", call["input"], call["scale"], call["zero_point"], low, high, _out_dtype(call))


def _group(call: Call) -> Q:
    low, high = _limits(call, "dtype")
    data = call["input"]
    block = [1] * (data.rank - 1) + [call["group_size"]]
    return Q(
        "block", data, call["scales"], call["zero_points"], low, high, call.dtype_of(call["output_dtype"]), block=block
    )


def _token(call: Call) -> Q:
    low, high = _limits(call, "dtype")
    return Q(
        "token", call["input"], call["scales"], call["zero_points"], low, high, call.dtype_of(call["output_dtype"])
    )


_VIEWS = {
    "torchao.dequantize_affine.default": _affine,
    "quantized_decomposed.dequantize_per_channel.default": _channel,
    "quantized_decomposed.dequantize_per_tensor.default": _tensor,
    "quantized_decomposed.dequantize_per_tensor.tensor": _tensor,
    "quantized_decomposed.dequantize_per_channel_group.default": _group,
    "quantized_decomposed.dequantize_per_token.default": _token,
}
