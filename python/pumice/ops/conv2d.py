# SPDX-License-Identifier: Apache-2.0
"""Convolutions of one and two dimensions, transposed or not, and batch norm with constant statistics: one form for all.
ops/conv2d.cpp and ops/conv2d_q8ta.cpp compute them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from pumice.format.ir import DType
from pumice.lowering.call import Call
from pumice.lowering.operands import ACTIVATIONS, FLOATS, numel, used_outputs
from pumice.lowering.quantized import QuantizedTensor, quantized
from pumice.lowering.quantized_activation import per_tensor
from pumice.lowering.quantized_weight import BYTES, Matrix, QuantizedWeight, pack
from pumice.lowering.ref import Ref
from pumice.lowering.registry import lowers
from pumice.lowering.sizes import same_shape
from pumice.lowering.windows import is_transposed

aten = torch.ops.aten

CONVOLUTIONS = (
    aten.conv1d.default,
    aten.conv1d.padding,
    aten.conv2d.default,
    aten.conv2d.padding,
    aten.conv_transpose1d.default,
    aten.conv_transpose2d.input,
    aten.convolution.default,
)
PADS = (aten.constant_pad_nd.default, aten.pad.default)
BATCH_NORMS = (aten.batch_norm.default, aten._native_batch_norm_legit_no_training.default)
MOST_PADDING = 2**15  # as ops/shared/patch.cpp has it
MOST_SPAN = 16  # columns, as ops/conv2d_depthwise_channels_last.cpp has it
MOST_COLUMNS = 2**31 // 255**2  # of a weight whose products with integers are summed in 32 bits


@dataclass(frozen=True)
class Norm:
    """out = x * scale + shift for each channel; `key` names it, the tensors are read when the file is written."""

    key: str
    scale: Callable[[], torch.Tensor]  # fp64
    shift: Callable[[], torch.Tensor]


@dataclass(frozen=True)
class Convolution:
    """`weight`: as torch has it, None of a norm alone. Sizes are (y, x), pads above, left, below, right."""

    call: Call
    x: Ref
    weight: Ref | None
    bias: Ref | None
    kernel: Sequence[int]
    stride: Sequence[int]
    pads: Sequence[int]
    dilation: Sequence[int]
    groups: int
    transposed: bool
    norm: Norm | None = None

    def fits(self, out: Ref) -> bool:
        """Whether it can write `out` itself."""
        return out.dtype is self.dtype

    @property
    def dtype(self) -> DType:
        """The dtype of x and of the result."""
        return self.x.dtype

    def emit(self, out: Ref, act: str = "none") -> None:
        """As floats; the integers of a quantized x are taken as they are where the weight is quantized, too."""
        call = self.call
        q = quantized(call, self.weight) if self.weight is not None else None
        source = self.source()
        if q is None:
            tail = (*self._geometry(), ACTIVATIONS[act])
            self._emit("conv2d", self.x, (self._rows(), self._bias()), tail, out)
            return
        weight = self.integers(q)
        if source is None:
            common = (weight.data, weight.scale, weight.zero, self._bias())
            self._emit("conv2d_q8csw", self.x, common, (*self._geometry(), ACTIVATIONS[act]), out)
        else:
            self.emit_integers("conv2d_q8ta_q8csw", source, weight, act, (), out)

    def runs_channels_last(self) -> bool:
        """Whether `emit_channels_last` computes it: each channel of a float weight has a small window of its own."""
        weight = self.weight
        if weight is None or self.transposed or not weight.is_constant or weight.rank != 4:
            return False
        one_each = self.groups == weight.shape[0] and weight.shape[1] == 1 and self.groups % 4 == 0
        return one_each and (self.kernel[1] - 1) * self.dilation[1] < MOST_SPAN

    def emit_channels_last(self, x: Ref, out: Ref, act: str = "none") -> None:
        """From `x` to `out`, whose channels are last; `out` may be tokens, [batch, y * x, channels]."""
        rows = self._rows()
        name = f"{rows.key}:taps"
        taps = self.call.constant(name, rows.dtype, rows.shape[::-1], lambda: self.call.value(rows).T)
        geometry = (list(sizes) for sizes in (self.kernel, self.stride, self.pads, self.dilation))
        image = out
        if out.rank != 4:
            _, _, *pixels = self.call.out.shape
            image = self.call.temp(out.dtype, [out.shape[0], *pixels, out.shape[-1]])
        self.call.emit("conv2d_depthwise_channels_last", x, taps, self._bias(), *geometry, ACTIVATIONS[act], out=image)
        if image is not out:
            self.call.emit("view", image, list(out.shape), out=out)

    def emit_integers(
        self, op: str, source: QuantizedTensor, weight: QuantizedWeight, act: str, tail: tuple, out: Ref
    ) -> None:
        """The operator `op` over the integers of x. `tail`: its arguments after those that all forms share."""
        common = (weight.data, weight.scale, weight.zero, self._bias())
        tail = (*self._geometry(), ACTIVATIONS[act], float(source.scale), int(source.zero), *tail)
        self._emit(op, source.data, common, tail, out)

    def source(self) -> QuantizedTensor | None:
        """The integers that x is made of, if one scale and zero point are numbers and 32 bits hold the sums."""
        return per_tensor(self.call, self.x) if self._sizes()[1] <= MOST_COLUMNS else None

    def integers(self, q: QuantizedTensor) -> QuantizedWeight:
        """The weight of a dequantize node as the operators take it, a scale for each output channel."""
        call, axis = self.call, 1 if self.transposed else 0
        if not q.data.is_constant or q.data.dtype not in BYTES:
            call.refuse(f"the integers of the weight are {q.data.dtype.name} or computed; constant bytes are supported")
        if q.kind != "tensor" and not (q.kind == "channel" and q.axis == axis and (axis == 0 or self.groups == 1)):
            granularity = f"in blocks of {q.block}" if q.block else f"by {q.kind}"
            call.refuse(
                f"a convolution with a weight quantized {granularity}; supported: a scale for each output channel"
            )
        if q.scale_dtype not in (None, DType.f32):
            call.refuse(f"scales of a convolution's weight are {q.scale.dtype.name}; f32 is supported")
        wraps = q.data.dtype if q.zero_dtype is q.data.dtype else None
        low, high = (-128, 127) if q.data.dtype is DType.i8 else (0, 255)
        rows, columns = self._sizes()
        values = lambda: self._as_rows(call.value(q.data))  # noqa: E731
        matrix = Matrix(
            f"{q.data.key}:{self._layout()}", rows, columns, values, max(q.qmin, low), min(q.qmax, high), columns,
            q.scale, q.zero, q.out_dtype, wraps=wraps if q.kind == "channel" else None,
        )  # fmt: skip
        return pack(call, matrix, 8)

    def check(self) -> None:
        """Refuses what cannot run for any input."""
        x, weight = self.x, self.weight
        q = quantized(self.call, weight)
        if not weight.is_constant and q is None:
            self.call.refuse("the weight of the convolution is computed, not constant")
        if x.dtype not in FLOATS or weight.dtype is not x.dtype:
            self.call.refuse(f"x is {x.dtype.name}, the weight {weight.dtype.name}; both f32 or both f16 are supported")
        if q is not None:
            self.integers(q)
        if self.bias is not None and not self.bias.is_constant:
            self.call.refuse("the bias of the convolution is computed, not constant")
        for sizes in (self.kernel, self.stride, self.pads, self.dilation):
            if any(not isinstance(size, int) for size in sizes):
                self.call.refuse(f"sizes of the convolution depend on those of the inputs: {sizes}")

    # ---- inside ------------------------------------------------------------------------------------------------------

    def _emit(self, op: str, x: Ref, weight: tuple, tail: tuple, out: Ref) -> None:
        call, shape = self.call, images(out.shape, self)
        whole = same_shape(shape, out.shape)
        into = out if whole else call.temp(out.dtype, shape)
        call.emit(op, call.view(x, images(x.shape, self)), *weight, *tail, out=into)
        if not whole:
            call.emit("view", into, list(out.shape), out=out)

    def _geometry(self) -> tuple:
        sizes = (list(sizes) for sizes in (self.kernel, self.stride, self.pads, self.dilation))
        return (*sizes, self.groups, self.transposed)

    def _layout(self) -> str:
        return f"rows^T{self.groups}" if self.transposed else "rows"

    def _sizes(self) -> tuple[int, int]:
        """Rows and columns of the weight as the operators take it."""
        if self.weight is None:
            return self.groups, 1
        first, second, *taps = self.weight.shape
        if not self.transposed:
            return first, second * numel(taps)
        return second * self.groups, first // self.groups * numel(taps)

    def _as_rows(self, weight: torch.Tensor) -> torch.Tensor:
        """[output channels, (input channel of the group, ky, kx)]."""
        if not self.transposed:
            return weight.flatten(1)
        return weight.flatten(2).unflatten(0, (self.groups, -1)).transpose(1, 2).flatten(2).flatten(0, 1)

    def _rows(self) -> Ref:
        call, norm, dtype, weight = self.call, self.norm, self.x.dtype, self.weight
        if weight is None:
            return call.constant(f"{norm.key}:scale", dtype, (self.groups, 1), lambda: norm.scale()[:, None])
        if norm is None:
            return call.constant(
                f"{weight.key}:{self._layout()}", dtype, self._sizes(), lambda: self._as_rows(call.value(weight))
            )
        scaled = lambda: self._as_rows(call.value(weight)).double() * norm.scale()[:, None]  # noqa: E731
        return call.constant(f"{weight.key}:{self._layout()} * {norm.key}", dtype, self._sizes(), scaled)

    def _bias(self) -> Ref | None:
        """fp32 whatever x is: the shift of a batch norm takes away a mean that may be far larger than what is left, and
        its rounding to fp16 would be the same error in every pixel, which no mean over them lessens."""
        call, norm, bias = self.call, self.norm, self.bias
        channels = self._sizes()[0]
        if norm is not None:
            before = lambda: 0.0 if bias is None else call.value(bias).double() * norm.scale()  # noqa: E731
            key = f"{norm.key}:shift" + (f" + {bias.key}" if bias is not None else "")
            return call.constant(key, DType.f32, (channels,), lambda: before() + norm.shift())
        if bias is None or bias.dtype is DType.f32:
            return bias
        return call.constant(f"{bias.key}:f32", DType.f32, (channels,), lambda: call.value(bias))


def images(shape: Sequence[Any], c: Convolution) -> list[Any]:
    """A tensor of `c` as [batch, channels, height, width]: unbatched ones, and those of one dimension, get ones."""
    if c.weight is None:
        return [shape[0], shape[1], 1, numel(shape[2:])]
    dims = c.weight.rank - 2
    batched = list(shape) if len(shape) == dims + 2 else [1, *shape]
    return batched if dims == 2 else [*batched[:2], 1, batched[2]]


def convolution(call: Call) -> Convolution:
    """Of a node whose target is one of CONVOLUTIONS; refuses what no operator computes."""
    weight = call.tensor("weight")
    dims = weight.rank - 2
    if dims not in (1, 2):
        call.refuse(f"a convolution over {dims} dimensions is not computed by conv2d")
    transposed = is_transposed(call)
    kernel = _pair(weight.shape[2:], dims, 1)
    stride, dilation = _pair(call["stride"], dims, 1), _pair(call["dilation"], dims, 1)
    x, pads = call.tensor("input"), _pads(call["padding"], kernel, dilation, dims)
    if transposed:
        more = _pair(call["output_padding"], dims, 0)
        pads = [*pads[:2], pads[2] - more[0], pads[3] - more[1]]
    conv = Convolution(call, x, weight, call["bias"], kernel, stride, pads, dilation, call["groups"], transposed)
    conv.check()
    return conv


def _pair(sizes: Any, dims: int, missing: int) -> list[int]:
    """(y, x) of an argument for `dims` dimensions, one number for all of them included."""
    given = [sizes] if isinstance(sizes, int) else list(sizes)
    given = given * dims if len(given) == 1 else given
    return [missing] * (2 - len(given)) + given


def _pads(padding: Any, kernel: list[int], dilation: list[int], dims: int) -> list[int]:
    if padding == "same":  # an odd one is at the end
        total = [d * (k - 1) for k, d in zip(kernel, dilation, strict=True)]
        return [*(t // 2 for t in total), *(t - t // 2 for t in total)]
    return _pair(0 if padding == "valid" else padding, dims, 0) * 2


def batch_norm(call: Call) -> Convolution:
    """Of a node whose target is one of BATCH_NORMS: a convolution of each channel by one number."""
    x, mean, var = call.tensor("input"), call["running_mean"], call["running_var"]
    factors = [call["weight"], call["bias"]]
    if call.target is aten.batch_norm.default and call["training"]:
        call.refuse("batch_norm in training mode; call eval() on the model")
    if x.rank < 2 or not isinstance(x.shape[1], int):
        call.refuse("batch_norm of a number of channels that is not fixed")
    if mean is None or var is None or any(t is not None and not t.is_constant for t in (mean, var, *factors)):
        call.refuse("batch_norm with computed factors or statistics")
    eps = call["eps"]

    def scale() -> torch.Tensor:
        inverse = (call.value(var).double() + eps).rsqrt()
        return inverse if factors[0] is None else inverse * call.value(factors[0]).double()

    def shift() -> torch.Tensor:
        moved = -call.value(mean).double() * scale()
        return moved if factors[1] is None else moved + call.value(factors[1]).double()

    norm = Norm(call.node.name, scale, shift)
    ones = [1, 1]
    return Convolution(call, x, None, None, ones, ones, [0, 0, 0, 0], ones, x.shape[1], False, norm)


@lowers(*BATCH_NORMS)
def batch_norm_alone(call: Call) -> None:
    """A batch norm with constant statistics; its saved statistics are refused."""
    if used_outputs(call) not in ([], [0]):
        call.refuse("the saved statistics of batch_norm are not supported")
    batch_norm(call).emit(call.out)
