# SPDX-License-Identifier: Apache-2.0
"""The tensors of a program that is being lowered: its nodes' results, its constants, and those that lowerings make."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx import Node

from pumice.format import ir
from pumice.format.dtypes import device_dtype
from pumice.lowering.folding import Constants
from pumice.lowering.instead import COMPLEX
from pumice.lowering.options import ExportOptions
from pumice.lowering.quantized_names import is_choose_qparams
from pumice.lowering.ref import Ref, Result, Stored
from pumice.lowering.registry import Refused
from pumice.lowering.shapes import Sizes
from pumice.lowering.sizes import plain
from pumice.lowering.subgraph import Subgraph


@dataclass(frozen=True)
class Context:
    """A program that is being lowered, and what its lowering goes by.

    origins: stack traces by node name before decomposition.
    """

    program: ExportedProgram | Subgraph
    options: ExportOptions
    sizes: Sizes
    origins: Mapping[str, str] = field(default_factory=dict)


class Values:
    """`notes`: conversions, for the report. `data`: the constants that lowerings made, by key."""

    def __init__(self, context: Context) -> None:
        self.constants = Constants(context.program, context.options.weights)
        self.origins = context.origins
        self.sizes = context.sizes
        self.options = context.options
        self.notes: dict[str, None] = {}  # an ordered set
        self.data: dict[str, tuple[Ref, Callable[[], Any]]] = {}

    def ref(self, node: Node, index: int = 0) -> Ref:
        """The tensor that `node` makes (result number `index`); a getitem is result number n of what it takes from."""
        value = node.meta["val"]
        if isinstance(value, list | tuple):
            value = value[index]
        maker = node
        if node.target is operator.getitem and isinstance(node.args[1], int):
            maker, index = node.args[0], node.args[1]
        constant = node in self.constants
        shape = tuple(map(plain, value.shape))
        if value.dtype is torch.float64 and is_choose_qparams(maker.target):
            # Computed in fp32 or fp16 and kept in fp64: fp32 holds the same numbers.
            return Ref(Result(maker, index), ir.DType.f32, shape, node, value.dtype)
        if constant:
            return Ref(
                Stored(self.constants.key(node)), self.dtype(value.dtype, literal=not shape), shape, node, value.dtype
            )
        return Ref(Result(maker, index), self.dtype(value.dtype), shape, node, value.dtype)

    def dtype(self, dtype: torch.dtype, literal: bool = False) -> ir.DType:
        """What `dtype` is on the device. `literal`: a constant of no dimensions, which takes part as a number does."""
        known = device_dtype(dtype, self.options.bf16, self.options.float64)
        if dtype is torch.bfloat16:
            self.notes[f"bfloat16 tensors, inputs and results included, are {known.name} on the device"] = None
        if dtype is torch.float64 and known is not None:
            self.notes["float64 tensors, inputs and results included, are f32 on the device"] = None
        if known is None and dtype is torch.float64 and literal:
            self.notes["float64 constants without dimensions are kept as f32"] = None
            known = ir.DType.f32
        if known is None and dtype.is_complex:
            raise Refused(f"tensors of {dtype} are not supported: {COMPLEX}")
        if known is None:
            raise Refused(
                f"tensors of {dtype} are not supported (f32, f16, bf16, i64, i32, i8, u8 and bool are)"
                + ("; the export option float64='as_float32' computes them in f32" if dtype is torch.float64 else "")
            )
        return known

    def add_constant(self, ref: Ref, data: Callable[[], Any]) -> None:
        """Makes the constant of a lowering known. `data` gives its bytes or its tensor when the file is written."""
        known = self.data.setdefault(ref.key, (ref, data))[0]
        if (known.dtype, known.shape) != (ref.dtype, ref.shape):
            raise AssertionError(
                f"two different constants '{ref.key}': {known.dtype}{known.shape}, {ref.dtype}{ref.shape}"
            )

    def constant_value(self, ref: Ref) -> Any:
        """The tensor of a constant."""
        if ref.node is not None:
            return self.constants.value(ref.node)
        return self.data[ref.key][1]()
