# SPDX-License-Identifier: Apache-2.0
"""One view of every dequantize node that torchao and PT2E write: real = (data - zero) * scale.

Nothing is assumed of the zero points: a symmetric and an asymmetric weight have the same graph.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from pumice.format.ir import DType
from pumice.lowering.call import Call
from pumice.lowering.quantized_names import DEQUANTIZE, DEQUANTIZE_NIBBLES
from pumice.lowering.ref import Ref


@dataclass(frozen=True)
class QuantizedTensor:
    """kind "block": one scale for each block of `block` elements (PerAxis(0) is block [1, K]); "group": the same by
    quantized_decomposed; "channel": one for each index of `axis`; "tensor": one; "token": one for each index of all
    dimensions but the last; "nibbles": ExecuTorch's packed int4 weights, two a byte, scales [G, N]."""

    kind: str
    data: Ref
    scale: Ref | float
    zero: Ref | float | int | None
    qmin: int
    qmax: int
    out_dtype: DType
    axis: int | None = None
    block: list[int] | None = None
    out_torch_dtype: torch.dtype | None = None

    @property
    def scale_dtype(self) -> DType | None:
        """The dtype of the scales; None of a number."""
        return self.scale.dtype if isinstance(self.scale, Ref) else None

    @property
    def zero_dtype(self) -> DType | None:
        """The dtype of the zero points; None of a number, and where there are none."""
        return self.zero.dtype if isinstance(self.zero, Ref) else None


def quantized(call: Call, x: Ref) -> QuantizedTensor | None:
    """The integers, scale and zero point of the dequantize node that makes `x`; None when another node makes it."""
    dequantize = call.producer(x, *_VIEWS)
    return None if dequantize is None else view(dequantize)


def view(dequantize: Call) -> QuantizedTensor:
    """The same of the dequantize node itself."""
    return _VIEWS[str(dequantize.target)](dequantize)


def _limits(call: Call, dtype: str) -> tuple[int, int]:
    """qmin, qmax; absent ones are the range of the integer type."""
    info = torch.iinfo(call[dtype])
    low, high = call["quant_min"], call["quant_max"]
    return (info.min if low is None else int(low)), (info.max if high is None else int(high))


def _fields(call: Call, kind: str, scale: str, zero: str, dtype: str, out: str, **more: Any) -> QuantizedTensor:
    """`scale` .. `out`: the names of the arguments."""
    out_dtype = call[out] or torch.float32
    parts = call["input"], call[scale], call[zero], *_limits(call, dtype)
    return QuantizedTensor(kind, *parts, call.dtype_of(out_dtype), out_torch_dtype=out_dtype, **more)


def _affine(call: Call) -> QuantizedTensor:
    block = list(call["block_size"])
    return _fields(call, "block", "scale", "zero_point", "input_dtype", "output_dtype", block=block)


def _channel(call: Call) -> QuantizedTensor:
    axis = call["axis"] % call["input"].rank
    return _fields(call, "channel", "scales", "zero_points", "dtype", "out_dtype", axis=axis)


def _tensor(call: Call) -> QuantizedTensor:
    return _fields(call, "tensor", "scale", "zero_point", "dtype", "out_dtype")


def _group(call: Call) -> QuantizedTensor:
    data, group = call["input"], call["group_size"]
    if group > data.shape[-1] and call["scales"].shape[-1] == 1:
        group = data.shape[-1]
    block = [1] * (data.rank - 1) + [group]
    return _fields(call, "group", "scales", "zero_points", "dtype", "output_dtype", block=block)


def _token(call: Call) -> QuantizedTensor:
    return _fields(call, "token", "scales", "zero_points", "dtype", "output_dtype")


def _nibbles(call: Call) -> QuantizedTensor:
    out_dtype, block = call["output_dtype"], [1, call["group_size"]]
    parts = call["qdata"], call["scale"], call["zero_point"], 0, 15
    return QuantizedTensor("nibbles", *parts, call.dtype_of(out_dtype), block=block, out_torch_dtype=out_dtype)


_VIEWS = {
    **dict(zip(DEQUANTIZE, (_affine, _channel, _tensor, _tensor, _group, _token), strict=True)),
    DEQUANTIZE_NIBBLES: _nibbles,
}
