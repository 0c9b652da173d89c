# SPDX-License-Identifier: Apache-2.0
"""Reductions over any dimensions."""

from __future__ import annotations

from typing import Any

import torch

from pumice.format.ir import DType
from pumice.lowering.call import Call
from pumice.lowering.operands import FLOATS, argument, axes, used_outputs
from pumice.lowering.ref import Ref
from pumice.lowering.registry import lowers

aten = torch.ops.aten

_BY_NAME = {
    aten.sum.default: "sum",
    aten.sum.dim_IntList: "sum",
    aten.mean.default: "mean",
    aten.mean.dim: "mean",
    aten.prod.default: "prod",
    aten.prod.dim_int: "prod",
    aten.amax.default: "amax",
    aten.amin.default: "amin",
    aten.max.default: "amax",
    aten.min.default: "amin",
    aten.argmax.default: "argmax",
    aten.argmin.default: "argmin",
    aten.any.default: "any",
    aten.any.dim: "any",
    aten.any.dims: "any",
    aten.all.default: "all",
    aten.all.dim: "all",
    aten.all.dims: "all",
}


def _dims(call: Call, x: Ref) -> list[int]:
    dim = argument(call, "dim")
    return axes([dim] if isinstance(dim, int) else dim, x.rank)


def _reduce(call: Call, op: str, x: Ref, *more: Any, out: Ref | None = None) -> Ref:
    """Over nothing (a tensor of rank 0) the operators still apply: `sum` of bool is an integer."""
    return call.emit(op, x, _dims(call, x), argument(call, "keepdim", False), *more, out=out)


@lowers(*_BY_NAME)
def reduce(call: Call) -> None:
    """One result for each kept index; sums of integers are i64, of bool too."""
    x, op, dtype = call.tensor("self"), _BY_NAME[call.target], call.out.dtype
    if op in ("sum", "prod", "mean"):
        if dtype not in (*FLOATS, DType.i64, DType.i32):
            call.refuse(f"{op} with a result of {dtype.name} is not supported")
        if dtype in FLOATS or x.dtype in FLOATS:
            x = call.cast(x, dtype)
    if op in ("any", "all") and dtype is not DType.bool:  # of u8 PyTorch gives u8
        found = _reduce(call, op, x, out=call.temp(DType.bool, call.out.shape))
        call.emit("cast", found, dtype)
        return
    _reduce(call, op, x)


@lowers(aten.max.dim, aten.min.dim)
def extremum_and_place(call: Call) -> None:
    """The extreme value and its index along one dimension, each only if it is read."""
    x = call.tensor("self")
    ops = ("amax", "argmax") if call.target is aten.max.dim else ("amin", "argmin")
    for index in used_outputs(call):
        _reduce(call, ops[index], x, out=call.outs[index])


def _correction(call: Call) -> float:
    """Without an argument: unbiased."""
    given = argument(call, "unbiased", argument(call, "correction"))
    return 1.0 if given is None else float(given)


@lowers(aten.var.default, aten.var.dim, aten.var.correction)
def var(call: Call) -> None:
    """The variance with any correction."""
    _reduce(call, "var", call.tensor("self"), _correction(call))


@lowers(aten.var_mean.default, aten.var_mean.dim, aten.var_mean.correction)
def var_mean(call: Call) -> None:
    """Variance and mean, each only if it is read."""
    x = call.tensor("self")
    for index in used_outputs(call):
        op, more = (("var", (_correction(call),)), ("mean", ()))[index]
        _reduce(call, op, x, *more, out=call.outs[index])


@lowers(aten.std.default, aten.std.dim, aten.std.correction)
def std(call: Call) -> None:
    """The square root of the variance."""
    x = call.tensor("self")
    call.emit("sqrt", _reduce(call, "var", x, _correction(call), out=call.temp(x.dtype, call.out.shape)))


@lowers(aten.linalg_vector_norm.default)
def vector_norm(call: Call) -> None:
    """Of any order; 0 counts what is not 0."""
    x, order = call.cast(call.tensor("self"), call.out.dtype), float(call["ord"])
    if order == 2:
        _reduce(call, "norm", x)
    elif order in (1, float("inf"), float("-inf")):
        size = call.emit("abs", x, out=call.temp(x.dtype, x.shape))
        _reduce(call, {1: "sum", float("inf"): "amax"}.get(order, "amin"), size)
    elif order == 0:
        found = call.cast(call.emit("ne", x, 0.0, out=call.temp(DType.bool, x.shape)), x.dtype)
        _reduce(call, "sum", found)
    else:
        _norm_of_powers(call, call.cast(x, DType.f32), order)


def _norm_of_powers(call: Call, x: Ref, order: float) -> None:
    """In f32: powers of f16 are soon beyond its range."""
    size = call.emit("abs", x, out=call.temp(x.dtype, x.shape))
    powers = call.emit("pow", size, order, out=call.temp(x.dtype, x.shape))
    total = _reduce(call, "sum", powers, out=call.temp(x.dtype, call.out.shape))
    if call.out.dtype is x.dtype:
        call.emit("pow", total, 1 / order)
    else:
        call.emit("cast", call.emit("pow", total, 1 / order, out=call.temp(x.dtype, call.out.shape)), call.out.dtype)
