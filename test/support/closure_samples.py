# SPDX-License-Identifier: Apache-2.0
"""Modules that together make every operator of the native table, in each dtype and storage: test/ops/test_closure.py.

Operators of one kind share a module, so that one export and one load run all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from pumice.llm import sample_token  # noqa: F401 (defines operators)
from pumice.passes import cached_attention, experts  # noqa: F401 (likewise)
from support import closure_modules as modules
from support import schemes
from support.budget import MATMUL
from support.cached_attention import CachedAttention
from support.experts import Experts
from support.experts import inputs as expert_inputs
from support.interleaved_attention import Attention
from support.many import ALL, FLOATS, Many, normal
from support.quantized import quantized
from support.squeeze_excite import SqueezeExcite

PRODUCTS = 4 * MATMUL.of_max  # two layers, and what is between them
F32, F16, I64, I32, I8, U8, BOOL = (
    getattr(torch, name) for name in ("float32", "float16", "int64", "int32", "int8", "uint8", "bool")
)
INTS, NUMBERS = [I64, I32, I8, U8], [*FLOATS, I64, I32, I8, U8]
TEXTURES = ("buffer", "texture3d")
WEIGHTS = (*TEXTURES, "texture2d", "texture3d texture2d")


@dataclass(frozen=True)
class Sample:
    """`make` gives a module and its inputs; it is exported for each of `storages`. tolerance: of the largest result,
    beside that of each float. step: by which an integer next to a tie may differ. is_open: eager PyTorch may give
    anything. is_chain: operators may become one, which they do where no storage is chosen."""

    name: str
    make: Callable[[], modules.Made]
    storages: tuple[str, ...] = ("buffer",)
    tolerance: float = 0.0
    step: int = 0
    is_open: bool = False
    is_chain: bool = False
    dynamic: Any = None


def _many(functions: Sequence[Callable[..., Any]], *inputs: torch.Tensor) -> Callable[[], modules.Made]:
    return lambda: (Many(functions), inputs)


def _given(module: nn.Module, *inputs: torch.Tensor) -> modules.Made:
    return module, inputs


def _layer(dtype: torch.dtype) -> modules.Made:
    return schemes.layers(dtype), schemes.inputs(dtype)


def _quantized(scheme: schemes.Scheme, dtype: torch.dtype) -> modules.Made:
    module, inputs = _layer(dtype)
    return scheme.quantize(module, inputs), inputs


def _embedding(bits: int, dtype: torch.dtype) -> modules.Made:
    return quantized(nn.Embedding(20, 64).to(dtype), bits, 32), (torch.arange(7),)


POINTWISE = [
    F.gelu, lambda x: F.gelu(x, approximate="tanh"), torch.tanh, torch.sigmoid, F.silu, torch.exp, torch.expm1,
    torch.log, torch.log1p, torch.log2, torch.log10, torch.sqrt, torch.rsqrt, torch.reciprocal, torch.sin, torch.cos,
    torch.erf, torch.floor, torch.ceil, torch.round, torch.trunc, F.hardswish, F.hardsigmoid, torch.relu, torch.neg,
    torch.abs, torch.sign, torch.square, torch.atan, torch.asin, torch.acos, torch.sinh, torch.cosh, torch.tan,
    torch.asinh, lambda x: torch.acosh(1 + x), torch.atanh, torch.exp2, torch.erfc, torch.lgamma, torch.digamma,
]  # fmt: skip
OF_INTEGERS = [torch.relu, torch.neg, torch.abs, torch.sign, torch.square, torch.bitwise_not]
PAIRS = [
    torch.add, torch.sub, torch.mul, torch.floor_divide, lambda a, b: torch.div(a, b, rounding_mode="trunc"),
    torch.remainder, torch.fmod, torch.maximum, torch.minimum, torch.pow,
    torch.eq, torch.ne, torch.lt, torch.le, torch.gt, torch.ge,
    torch.logical_and, torch.logical_or, torch.logical_xor,
]  # fmt: skip
OF_FLOATS = [
    torch.div, torch.atan2, lambda a, b: F.leaky_relu(a, 0.1), lambda a, b: F.elu(a), lambda a, b: torch.relu(b + a),
    torch.fmax, torch.fmin, torch.copysign, torch.hypot, torch.logaddexp, torch.logaddexp2,
]  # fmt: skip
BITWISE = [torch.bitwise_and, torch.bitwise_or, torch.bitwise_xor]
OF_BOOLS = [*PAIRS[:1], PAIRS[2], *PAIRS[7:9], *PAIRS[10:], *BITWISE]  # eager PyTorch has none of the others
MOVED = [
    lambda x: torch.cat([x, x], 1), lambda x: x.expand(2, 3, 6, 5), lambda x: x.flip(0), lambda x: x.permute(2, 0, 1),
    lambda x: x.repeat(1, 2, 1), lambda x: x.select(1, 2), lambda x: x[:, 1::2], lambda x: x.reshape(6, 3, 5),
    lambda x: F.pad(x, (1, 2), value=1), lambda x: F.pad(x, (1, 2), "circular"), torch.tril, torch.triu,
    lambda x: torch.slice_scatter(x, x[:, :2], 1, 2, 4), lambda x: torch.where(x == x[0], x, x[1]),
    lambda x: x.gather(1, (x[:, :2] == x[:, 1:3]).long()), lambda x: x[[[0, 2], [1, 1]]],
    lambda x: x.index_select(0, x.new_ones(2).long()), lambda x: x.index_copy(0, x.new_ones(1).long(), x[:1]),
    lambda x: torch.sort(x, -1)[0],
    lambda x: x.scatter(1, (x[:, :1] == x[:, 1:2]).long(), x[:, :1]),
]  # fmt: skip
INSIDE = [
    lambda x: F.pad(x, (1, 2), "reflect"),
    lambda x: F.pad(x, (1, 2), "replicate"),
]  # not of bools in eager PyTorch
REDUCED = [
    lambda x: x.sum(1), lambda x: x.prod(-1), lambda x: x.amax(1), lambda x: x.amin(1), lambda x: (x > 0).all(1),
    lambda x: x.any(1), lambda x: x.all(1), lambda x: x.argmax(1), lambda x: x.argmin(1),
]  # fmt: skip
OF_ROWS = [
    lambda x: x.mean(1), lambda x: x.var(1), lambda x: torch.linalg.vector_norm(x, dim=1), lambda x: x.softmax(-1),
    lambda x: x.log_softmax(-1), lambda x: F.layer_norm(x, (5,)), lambda x: F.rms_norm(x, (5,)),
    lambda x: F.group_norm(x, 2), lambda x: F.scaled_dot_product_attention(x[None], x[None], x[None]),
    lambda x: x @ x.mT, lambda x: F.embedding((x[0] > 0).long(), x[1]),
]  # fmt: skip
SCANS = [
    lambda x: x.cumsum(1, dtype=x.dtype), lambda x: x.cumprod(1, dtype=x.dtype), lambda x: x.cummax(1)[0],
    lambda x: x.cummin(1)[0],
]  # fmt: skip
JOINED = {
    how: lambda x, how=how: x.scatter_reduce(1, (x[:, :3] > 0).long(), x, how)
    for how in ("sum", "prod", "amax", "amin", "mean")
}
GRID = torch.linspace(-1, 1, 24).reshape(1, 3, 4, 2)
IMAGES = [
    lambda x: F.avg_pool2d(x, 2), lambda x: F.adaptive_avg_pool2d(x, 3), lambda x: F.interpolate(x, (7, 4)),
    lambda x: F.grid_sample(x, GRID.to(x.dtype), align_corners=False),
]  # fmt: skip
LARGEST = [lambda x: F.max_pool2d(x, 2), lambda x: F.max_pool2d(x, 2, return_indices=True)]
MADE = [  # in dynamic sizes, as others are constants
    *(lambda x, dtype=dtype: torch.full((x.shape[0], 3), 1, dtype=dtype) for dtype in ALL),
    lambda x: torch.arange(x.shape[0]), lambda x: torch.arange(x.shape[0], dtype=torch.int32),
]  # fmt: skip


BETWEEN = {  # integers
    "q8ta_add": lambda a, b: a + b, "q8ta_mul": lambda a, b: a * b, "q8ta_avg_pool": lambda x: F.avg_pool2d(x, 3, 2, 1),
    "q8ta_adaptive_avg_pool": lambda x: F.adaptive_avg_pool2d(x, (2, 3)), "lookup": torch.tanh,
    "q8ta_upsample2d": lambda x: F.interpolate(x, (7, 11), mode="bilinear"),
    "upsample2d": lambda x: F.interpolate(x, scale_factor=2),
}  # fmt: skip


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _elements() -> Iterator[Sample]:
    for dtype in FLOATS:
        x, y = normal(3, 5, dtype=dtype).abs() / 4, normal(3, 5, dtype=dtype, seed=2)
        yield Sample(f"pointwise {_name(dtype)}", _many(POINTWISE, x), TEXTURES)
        yield Sample(f"pairs {_name(dtype)}", _many(PAIRS + OF_FLOATS, x, y))
        yield Sample(f"nextafter {_name(dtype)}", _many([torch.nextafter], x, y))
    yield Sample("bfloat16", _many([lambda x: x.bfloat16().float()], normal(3, 5)), TEXTURES)
    for dtype in INTS:
        x, y = normal(3, 5, dtype=dtype), normal(3, 5, dtype=dtype, seed=2).abs() % 5 + 1
        yield Sample(f"pointwise {_name(dtype)}", _many(OF_INTEGERS, x), TEXTURES)
        yield Sample(f"pairs {_name(dtype)}", _many(PAIRS + BITWISE, x % 7, y))
    x, y = normal(3, 5, dtype=BOOL), normal(3, 5, dtype=BOOL, seed=2)
    yield Sample("pointwise bool", _many([torch.logical_not, torch.sign], x), TEXTURES)
    yield Sample("pairs bool", _many(OF_BOOLS, x, y))
    for dtype in ALL:
        x = normal(3, 5, dtype=dtype)
        x = x if dtype is BOOL else x.abs()
        yield Sample(f"casts {_name(dtype)}", _many([lambda x, to=to: x.to(to) for to in ALL if to is not dtype], x))
    rows = torch.export.Dim("rows", min=2, max=64)
    yield Sample("made", _many(MADE, normal(5, 3)), dynamic={"inputs": ({0: rows},)})
    yield Sample("random", _many([torch.rand_like, lambda x: torch.randint_like(x, 9)], normal(3, 5)), is_open=True)


def _tensors() -> Iterator[Sample]:
    for dtype in ALL:
        x = normal(3, 6, 5, dtype=dtype)
        more = [] if dtype is BOOL else [*INSIDE, lambda x: torch.topk(x, 2)[0], lambda x: x.clamp(0, 3), *REDUCED[-2:]]
        yield Sample(f"moved {_name(dtype)}", _many([*MOVED, *more, *REDUCED[:-2]], x % 3 if dtype in INTS else x))
    for dtype in NUMBERS:
        joined = [JOINED[how] for how in ("sum", "amax", "amin")]
        joined += [JOINED["prod"]] if dtype is not I64 else []
        joined += [JOINED["mean"]] if dtype in FLOATS else []
        yield Sample(f"joined {_name(dtype)}", _many(joined, normal(3, 4, dtype=dtype) % 3))
        yield Sample(f"largest {_name(dtype)}", _many(LARGEST, normal(1, 2, 6, 5, dtype=dtype)))
    for dtype in (*FLOATS, I64, I32):
        add = lambda x: x.index_add(0, x.new_ones(1).long(), x[:1])  # noqa: E731
        yield Sample(f"index_add {_name(dtype)}", _many([add], normal(3, 5, dtype=dtype)))
    for dtype in (F32, I64, I32):
        scans = [
            SCANS[2],
            SCANS[3],
            *(lambda x, scan=scan: scan(x, 1, dtype=x.dtype) for scan in (torch.cumsum, torch.cumprod)),
        ]
        yield Sample(f"scans {_name(dtype)}", _many(scans, normal(3, 6, dtype=dtype) % 3))
    yield Sample("logcumsumexp", _many([lambda x: torch.logcumsumexp(x, 1)], normal(3, 6)))
    for dtype in FLOATS:
        yield Sample(f"rows {_name(dtype)}", _many(OF_ROWS, normal(3, 6, 5, dtype=dtype)), tolerance=PRODUCTS)
        yield Sample(f"images {_name(dtype)}", _many(IMAGES, normal(1, 2, 6, 5, dtype=dtype)))
    yield Sample("images uint8", _many([IMAGES[2]], normal(1, 2, 6, 5, dtype=U8)))


def _layers() -> Iterator[Sample]:
    for op in ("q4gsw", "q8csw", "q8gsw", "dq8ca_q4gsw", "dq8ca_q8csw", "dq8ca_q8gsw"):
        for dtype in FLOATS:
            scheme = next(each for each in schemes.SCHEMES if f"linear_{op}" in each.ops and dtype in each.dtypes)
            step = 0.02 if "dq8" in op else 0.0
            yield Sample(f"linear_{op} {_name(dtype)}", partial(_quantized, scheme, dtype), WEIGHTS, PRODUCTS + step)
    for dtype in FLOATS:
        name, x, image = _name(dtype), normal(5, 64, dtype=dtype), normal(1, 4, 7, 6, dtype=dtype)
        yield Sample(f"linear {name}", partial(_layer, dtype), WEIGHTS, PRODUCTS)
        yield Sample(f"linear_q8ta_q8csw {name}", partial(_given, modules.Static(dtype), x), WEIGHTS, PRODUCTS)
        for bits in (4, 8):
            yield Sample(f"embedding_q{bits}gsw {name}", partial(_embedding, bits, dtype), ("buffer", "texture2d"))
        yield Sample(f"conv2d {name}", partial(_given, nn.Conv2d(4, 6, 3).to(dtype), image), TEXTURES, PRODUCTS)
        yield Sample(f"conv2d_q8csw {name}", partial(_given, modules.Convolution(dtype), image), TEXTURES, PRODUCTS)
        for to in (I8, U8, I32):
            yield Sample(f"rounded {name} {_name(to)}", partial(modules.rounded, dtype, to), TEXTURES)
    for dtype in (I8, U8):
        name, q, image = _name(dtype), modules.integers(dtype, 5, 64), modules.integers(dtype, 1, 4, 7, 6)
        x, conv = normal(5, 64), modules.Integers(F.conv2d, (6, 4, 3, 3))
        linear = modules.Quantized(dtype, modules.Integers(F.linear, (20, 64)))
        yield Sample(f"q8ta_linear {name}", partial(_given, linear, x), WEIGHTS, step=1)
        yield Sample(f"q8ta_conv2d {name}", partial(_given, conv, image), TEXTURES, step=1)
        conv = modules.Integers(F.conv2d, (6, 4, 3, 3), requantized=False)
        yield Sample(f"conv2d_q8ta_q8csw {name}", partial(_given, conv, image), TEXTURES, PRODUCTS)
        chain = modules.Integers(F.linear, (64, 64)), modules.Integers(F.linear, (20, 64), False, modules.MADE)
        linears = modules.Quantized(dtype, *chain)
        yield Sample(f"linear_q8ta_q8csw {name}", partial(_given, linears, x), WEIGHTS, PRODUCTS)
        for op, function in BETWEEN.items():
            inputs = (q, modules.integers(dtype, 64)) if op in ("q8ta_add", "q8ta_mul") else (image,)
            yield Sample(f"{op} {name}", partial(_given, modules.Integers(function), *inputs), step=1)
    yield Sample("linear_qta8a_qga4w_qta8o", modules.rows, WEIGHTS, step=1)


def _patterns() -> Iterator[Sample]:
    for dtype in FLOATS:
        name, x, first = _name(dtype), normal(1, 3, 32, dtype=dtype), torch.tensor([2])
        block, draw = modules.Block().to(dtype), normal(2, 50, dtype=dtype)
        route = lambda logits: torch.ops.pumice.route_experts(logits, 4, True)  # noqa: E731
        yield Sample(f"fused_linear {name}", partial(_given, block, normal(3, 64, dtype=dtype)), tolerance=PRODUCTS)
        conv = modules.DepthwiseChannelsLast().to(dtype), normal(1, 5, 6, 4, dtype=dtype)
        yield Sample(f"conv2d_depthwise_channels_last {name}", partial(_given, *conv), tolerance=PRODUCTS)
        yield Sample(f"sample_token {name}", partial(_given, modules.Draw(), draw))
        yield Sample(f"route_experts {name}", partial(_given, Many([route]), normal(3, 20, dtype=dtype)))
        x_of_experts, chosen, factors = expert_inputs(4)
        mixture = Experts("silu", None).to(dtype), x_of_experts.to(dtype), chosen, factors.to(dtype)
        yield Sample(f"expert_linear {name}", partial(_given, *mixture), tolerance=PRODUCTS)
        chain = _many([lambda x: torch.tanh(x * 2)], draw)
        yield Sample(f"elementwise_chain {name}", chain, is_chain=True)
        scores = _many([lambda x: (x / 3 + x[:1]).softmax(-1)], draw)
        yield Sample(f"masked_softmax {name}", scores)
        gated = SqueezeExcite(12, 3).to(dtype), normal(1, 12, 5, 7, dtype=dtype)
        yield Sample(f"squeeze_excite {name}", partial(_given, *gated), tolerance=PRODUCTS)
        for int8 in (False, True):
            kind, tolerance = f"{'_int8' if int8 else ''}", PRODUCTS + (2.5 / 127 if int8 else 0)
            options = {"heads": 4, "kv_heads": 2, "size": 16, "capacity": 8, "rotated": 16, "int8": int8}
            attention = CachedAttention(**options).of_floats(dtype), x, first
            yield Sample(f"cached_attention{kind} {name}", partial(_given, *attention), tolerance=tolerance)
            neighbours = Attention(int8=int8).of_floats(dtype), x[:, :1], first
            yield Sample(
                f"cached_attention{kind}_interleaved {name}", partial(_given, *neighbours), tolerance=tolerance
            )


def _heads() -> Iterator[Sample]:
    for dtype in FLOATS:
        attention = modules.SelfAttention().to(dtype), normal(1, 5, 32, dtype=dtype)
        yield Sample(f"sdpa_heads {_name(dtype)}", partial(_given, *attention), tolerance=PRODUCTS)


def _patches() -> Iterator[Sample]:
    for dtype in FLOATS:
        patches = modules.Patches().to(dtype), normal(1, 3, 4, 8, dtype=dtype)
        yield Sample(f"patches {_name(dtype)}", partial(_given, *patches), tolerance=PRODUCTS)


def samples() -> dict[str, Sample]:
    """All of them by name."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(16)
        kinds = (_elements, _tensors, _layers, _patterns, _heads, _patches)
        return {sample.name: sample for kind in kinds for sample in kind()}
