# SPDX-License-Identifier: Apache-2.0
"""Checks an operator call against the operator's signature and its shader's variants, and encodes the arguments."""

from __future__ import annotations

from typing import Any

import torch

from pumice.format.ir import DType
from pumice.lowering.instead import VALUES
from pumice.lowering.optable import Parameter, Signature, op_table
from pumice.lowering.ref import Ref
from pumice.lowering.registry import Refused
from pumice.lowering.shapes import Sizes
from pumice.lowering.sizes import of_values

_INT32 = range(-(2**31), 2**31)
_INT64 = range(-(2**63), 2**63)
_MAX_RANK = 8  # Limits::max_rank of serialization/program.h


def encode(op: str, version: int, args: list[Any], outputs: list[Ref], sizes: Sizes) -> list[Any]:
    """The arguments in the kinds of ir.Arg (tensors stay Refs); Refused with a reason when the call could not run."""
    signature = op_table().get((op, version))
    if signature is None:
        raise Refused(f"there is no operator '{op}' version {version} in this build")
    if len(args) > len(signature.parameters):
        raise Refused(f"{op} takes {len(signature.parameters)} arguments, got {len(args)}")
    args = args + [None] * (len(signature.parameters) - len(args))
    encoded = [_encode(op, parameter, arg, sizes) for parameter, arg in zip(signature.parameters, args, strict=True)]
    if len(outputs) != len(signature.outputs) and signature.outputs != ("Tensors",):
        raise Refused(f"{op} has {len(signature.outputs)} results, got {len(outputs)}")
    for output in outputs:
        if len(output.shape) > _MAX_RANK:
            raise Refused(f"{op}: a result of rank {len(output.shape)}, the limit is {_MAX_RANK}")
        for size in output.shape:
            sizes.check(size)
    _check_dtypes(signature, encoded, outputs)
    return encoded


def _check_dtypes(signature: Signature, args: list[Any], outputs: list[Ref]) -> None:
    tensors = [item for arg in args for item in (arg if isinstance(arg, list) else [arg]) if isinstance(item, Ref)]
    for what, refs in (("tensors", tensors), ("results", outputs)):
        known = signature.accepts.get(what)
        dtype = refs[0].dtype.name if refs else ""
        if refs and known is not None and dtype not in known:
            raise Refused(f"{signature.name} has no variant for {dtype} {what} (it has {', '.join(known)})")


def _encode(op: str, parameter: Parameter, arg: Any, sizes: Sizes) -> Any:
    if arg is None:
        if not parameter.optional:
            raise Refused(f"{op}: '{parameter.name}' is missing")
        return None
    encoder = _ENCODERS.get(parameter.type)
    if encoder is None:
        raise Refused(f"{op}: '{parameter.name}' is of the unknown kind {parameter.type}")
    try:
        return encoder(arg, sizes)
    except _Mismatch as mismatch:
        raise Refused(f"{op}: '{parameter.name}' {mismatch}") from None


class _Mismatch(Exception):
    pass


def _not_fixed(arg: Any) -> str:
    if of_values(arg):
        return f"must be a fixed number, but it is read from a tensor (.item(), int() or float()): {VALUES}"
    return f"must be a fixed number, but {arg} depends on the sizes of the inputs: make those sizes fixed"


def _tensor(arg: Any, _: Sizes) -> Any:
    if not isinstance(arg, Ref):
        raise _Mismatch(f"must be a tensor, got {arg!r}")
    return arg


def _tensors(arg: Any, sizes: Sizes) -> list[Any]:
    return [_tensor(item, sizes) for item in _list(arg)]


def _int(arg: Any, _: Sizes) -> int:
    if isinstance(arg, torch.SymInt):
        raise _Mismatch(_not_fixed(arg))
    if isinstance(arg, float) and arg.is_integer():
        arg = int(arg)
    if not isinstance(arg, int) or isinstance(arg, DType):
        raise _Mismatch(f"must be an integer, got {arg!r}")
    if int(arg) not in _INT64:
        raise _Mismatch(f"is {arg}, beyond 64 bits")
    return int(arg)


def _float(arg: Any, _: Sizes) -> float:
    if isinstance(arg, torch.SymInt | torch.SymFloat):
        raise _Mismatch(_not_fixed(arg))
    if not isinstance(arg, int | float):
        raise _Mismatch(f"must be a number, got {arg!r}")
    return float(arg)


def _bool(arg: Any, _: Sizes) -> bool:
    if not isinstance(arg, bool):
        raise _Mismatch(f"must be true or false, got {arg!r}")
    return arg


def _dtype(arg: Any, _: Sizes) -> DType:
    if not isinstance(arg, DType):
        raise _Mismatch(f"must be a dtype, got {arg!r}")
    return arg


def _operand(arg: Any, sizes: Sizes) -> Any:
    if isinstance(arg, Ref):
        return arg
    if isinstance(arg, bool | int) and not isinstance(arg, DType):
        if int(arg) not in _INT32:
            raise _Mismatch(f"is {arg}, which does not fit the 32-bit integers of the device")
        return int(arg)
    return _float(arg, sizes)


def _size(arg: Any, sizes: Sizes) -> Any:
    return sizes.size(arg) if isinstance(arg, torch.SymInt) else _int(arg, sizes)


def _list(arg: Any) -> list[Any]:
    if not isinstance(arg, list | tuple):
        raise _Mismatch(f"must be a list, got {arg!r}")
    return list(arg)


_ENCODERS = {
    "Tensor": _tensor,
    "Tensors": _tensors,
    "operand": _operand,
    "int": _int,
    "float": _float,
    "bool": _bool,
    "dtype": _dtype,
    "size": _size,
    "ints": lambda arg, sizes: [_int(item, sizes) for item in _list(arg)],
    "sizes": lambda arg, sizes: [_size(item, sizes) for item in _list(arg)],
}
