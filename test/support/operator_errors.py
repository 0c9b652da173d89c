# SPDX-License-Identifier: Apache-2.0
"""The error that each ATen operator alone may have, for support/operator_roundings.py."""

from __future__ import annotations

from typing import Any

import torch

from support.budget import (
    ACTIVATION,
    ARITHMETIC,
    ATTENTION,
    EXACT,
    EXP,
    LOG,
    NORM,
    POW,
    REDUCTION,
    ROOT,
    SOFTMAX,
    TRIGONOMETRY,
    ULP,
    Budget,
)
from support.sums import SUM_UNIT, Sums, product, sums

# The result is one of the elements, or a whole number that they decide.
_MOVED = """
abs neg sign relu relu6 clamp clamp_min clamp_max hardtanh threshold hardshrink maximum minimum fmax fmin max min amax
amin aminmax argmax argmin max_pool2d_with_indices max_pool3d_with_indices adaptive_max_pool2d adaptive_max_pool3d
floor ceil round trunc floor_divide remainder fmod where masked_fill cat stack index _unsafe_index index_select gather
embedding index_put _unsafe_index_put index_copy scatter slice_scatter select_scatter constant_pad_nd reflection_pad1d
reflection_pad2d reflection_pad3d replication_pad1d replication_pad2d replication_pad3d clone copy lift_fresh_copy
lift_fresh full full_like zeros zeros_like ones ones_like new_zeros new_empty new_ones new_full scalar_tensor fill
repeat flip roll upsample_nearest1d upsample_nearest2d upsample_nearest3d eq ne lt le gt ge logical_and logical_or
logical_not logical_xor isnan isinf sort topk median tril triu unfold_copy im2col _local_scalar_dense pixel_shuffle
pixel_unshuffle channel_shuffle native_channel_shuffle unsafe_split unsafe_chunk _reshape_copy permute_copy view_copy
expand_copy narrow_copy split_copy split_with_sizes_copy unbind_copy _unsafe_view zero as_strided
"""
_BUDGETS: dict[Budget, str] = {
    EXACT: "add sub rsub mul _to_copy",
    # x + 3 has one rounding, and nothing is subtracted from it: an error grows with the result
    ARITHMETIC: "div reciprocal square leaky_relu _prelu_kernel arange addcmul lerp hardswish hardsigmoid",
    ROOT: "sqrt rsqrt",
    EXP: "exp exp2 expm1",
    LOG: "log log2 log10 log1p",
    TRIGONOMETRY: "sin cos tan",
    POW: "pow",
    ACTIVATION: "gelu silu sigmoid tanh elu softplus log_sigmoid_forward mish erf celu glu",
    REDUCTION: "mean sum var cumsum prod avg_pool2d avg_pool3d _adaptive_avg_pool2d _adaptive_avg_pool3d "
    "upsample_bilinear2d upsample_linear1d _embedding_bag _embedding_bag_forward_only linalg_vector_norm",
    SOFTMAX: "_softmax _log_softmax",
    NORM: "native_layer_norm native_group_norm native_batch_norm _native_batch_norm_legit_no_training",
    ATTENTION: "_scaled_dot_product_flash_attention_for_cpu _scaled_dot_product_attention_math",
}
_NAMED = {name: budget for budget, names in _BUDGETS.items() for name in names.split()}
_NAMED |= dict.fromkeys(_MOVED.split())
_PRODUCTS = {"mm": (0, 1), "bmm": (0, 1), "addmm": (1, 2), "baddbmm": (1, 2)}  # which of the arguments
_BATCH_NORMS = ("native_batch_norm", "_native_batch_norm_legit_no_training")
_FIXED = 28  # roundings of a product that do not grow with its terms: support/int8.py's of kernels of floats


class Unknown(KeyError):
    """An operator without a budget here."""


def error_of(func: Any, args: tuple, kwargs: dict, result: torch.Tensor, stored: torch.dtype) -> torch.Tensor | None:
    """Of each element of the result, or None where it is exact; `args` and `result` are fp64."""
    if (
        func.namespace != "aten"
    ):  # what quantizes and dequantizes; the former's results are integers, but for its scales
        return ARITHMETIC.allowed(result, stored)
    if any(value.alias_info is not None and not value.alias_info.is_write for value in func._schema.returns):
        return None
    name = func._schema.name.removeprefix("aten::")
    name = name.removesuffix("_") if func._schema.is_mutable else name
    if name in _PRODUCTS or name == "convolution":
        return _sums(name, args, result).error(fixed=_FIXED) + EXACT.allowed(result, stored)
    if name in _BATCH_NORMS and not (name == "native_batch_norm" and args[5]):
        return _of_statistics(args, result) + EXACT.allowed(result, stored)
    if name not in _NAMED:
        raise Unknown(f"no budget is known for {func}: support/operator_errors.py")
    if name == "_to_copy" and kwargs.get("dtype") in (None, torch.float64):
        return None if stored is torch.float32 else EXACT.allowed(result, stored)
    if name == "round" and "decimals" in kwargs:
        return _of_decimals(args[0], kwargs["decimals"], result) + ARITHMETIC.allowed(result, stored)
    accumulates = name in ("index_put", "_unsafe_index_put") and any(each is True for each in args[3:])
    budget = REDUCTION if accumulates else _NAMED[name]
    if budget is None:
        return None
    error = budget.allowed(result, stored)
    if budget is EXACT:  # of numbers that are stored exactly, as whole ones are, nothing is rounded
        error = torch.where(result.to(stored) == result, 0.0, error)
    if name in ("silu", "mish"):  # x times a number that is so far off
        error = error - budget.atol * (1 - args[0].abs().clamp(max=1))
    if (alpha := kwargs.get("alpha", 1)) != 1:  # a product that rounds before the sum does
        error = error + SUM_UNIT * (alpha * torch.as_tensor(args[0 if name == "rsub" else 1]).double()).abs()
    return error


def _of_statistics(args: tuple, result: torch.Tensor) -> torch.Tensor:
    """A batch norm with given statistics sums nothing: x s - mean s + bias, s = weight rsqrt(var + eps), which is 5 ulp
    off, in whatever order and with whatever of it computed before. The other results are the statistics."""
    x, weight, bias, mean, var = args[:5]
    if result.shape != x.shape:
        return ROOT.allowed(result, torch.float32)
    scale = (var + args[-1]).rsqrt() * (1.0 if weight is None else weight)
    terms = (mean * scale).abs() + (0.0 if bias is None else bias.abs())
    along = (-1, *[1] * (x.dim() - 2))
    return 8 * ULP * ((x * scale.view(along)).abs() + terms.view(along))


def _of_decimals(x: torch.Tensor, decimals: int, result: torch.Tensor) -> torch.Tensor:
    """A number so close to a tie that its product by a power of ten decides goes either way."""
    power = 10.0**decimals
    ways = [(x * power * (1 + sign * ULP)).round() / power for sign in (-1, 1)]
    return torch.stack([(way - result).abs() for way in ways]).amax(dim=0)


def _sums(name: str, args: tuple, result: torch.Tensor) -> Sums:
    if name == "convolution":
        x, weight, bias, *rest = args
        terms = weight[0].numel() if not rest[3] else weight[:, 0].numel()
        return sums(lambda x, weight: torch.ops.aten.convolution(x, weight, None, *rest), x, weight, terms=terms).plus(
            None if bias is None else bias.view(-1, *[1] * (result.dim() - 2))
        )
    a, b = (args[at] for at in _PRODUCTS[name])
    return product(a, b).plus(args[0] if name in ("addmm", "baddbmm") else None)
