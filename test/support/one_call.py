# SPDX-License-Identifier: Apache-2.0
"""Programs made of single operator calls: for operators and cases that no torch model reaches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from pumice.format import ir
from pumice.format.constants import file_bytes, pack
from pumice.format.writer import to_bytes

DTYPES = {
    torch.float32: ir.DType.f32,
    torch.float16: ir.DType.f16,
    torch.int8: ir.DType.i8,
    torch.uint8: ir.DType.u8,
    torch.int32: ir.DType.i32,
}


class OneCall:
    """input() and constant() make the tensors, call() operator calls, bytes() the file. A size may be a symbol."""

    def __init__(self) -> None:
        self.program, self.method = ir.Program(producer="test"), ir.Method()
        self.program.methods.append(self.method)
        self._symbols: dict[str, ir.SizeExpr] = {}

    def _dims(self, dims: Sequence[int | str]) -> list[ir.Size]:
        sizes: list[ir.Size] = []
        for dim in dims:
            if isinstance(dim, str) and dim not in self._symbols:
                self._symbols[dim] = ir.SizeExpr(len(self.method.exprs))
                self.method.symbols.append(ir.Symbol(dim, 0, 1 << 20, 4))
                self.method.exprs.append(ir.Expr(ir.ExprOp.symbol, len(self.method.symbols) - 1))
            sizes.append(self._symbols[dim] if isinstance(dim, str) else dim)
        return sizes

    def size(self, symbol: str) -> ir.Size:
        """As an argument of a call."""
        return self._dims([symbol])[0]

    def _value(self, kind: ir.ValueKind, dtype: torch.dtype | ir.DType, dims: Sequence[int | str], **more: Any) -> int:
        file_dtype = dtype if isinstance(dtype, ir.DType) else DTYPES[dtype]
        self.method.values.append(ir.Value(kind, file_dtype, self._dims(dims), **more))
        return len(self.method.values) - 1

    def input(self, dtype: torch.dtype, dims: Sequence[int | str]) -> ir.ValueId:
        value = self._value(ir.ValueKind.input, dtype, dims, name=f"x{len(self.method.inputs)}")
        self.method.inputs.append(value)
        return ir.ValueId(value)

    def constant(self, tensor: torch.Tensor | None, dtype: ir.DType | None = None) -> ir.ValueId | None:
        """`dtype`: ir.DType.i4 for int8 tensors that become int4."""
        if tensor is None:
            return None
        file_dtype = dtype or DTYPES[tensor.dtype]
        data = pack(np.asarray(tensor), file_dtype)
        assert len(data) == file_bytes(file_dtype, tensor.shape)
        self.program.constants.append(ir.Constant(f"c{len(self.program.constants)}", len(data), lambda: data))
        ref = len(self.program.constants) - 1
        return ir.ValueId(self._value(ir.ValueKind.constant, file_dtype, tensor.shape, ref=ref))

    def call(
        self, op: str, args: list[Any], dtype: torch.dtype, dims: Sequence[int | str], inner: bool = False
    ) -> ir.ValueId:
        """An operator call whose one result is an output of the program, unless it is an inner value."""
        kind = ir.ValueKind.scratch if inner else ir.ValueKind.output
        out = self._value(kind, dtype, dims, name="" if inner else f"y{len(self.method.outputs)}")
        if not inner:
            self.method.outputs.append(out)
        self.method.ops.append(ir.OpCall(op, 1, args, [out]))
        return ir.ValueId(out)

    def bytes(self) -> bytes:
        return to_bytes(self.program)
