# SPDX-License-Identifier: Apache-2.0
"""From a finished selection to ir.Program: numbers the values, collects the constants, names inputs and outputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch.fx import Node

from pumice.errors import UnsupportedError
from pumice.format import ir
from pumice.format.constants import file_bytes, pack
from pumice.format.dtypes import TORCH
from pumice.lowering.call import Emitted
from pumice.lowering.ref import Ref, Result, Temporary
from pumice.lowering.source import source
from pumice.lowering.values import Values


class Builder:
    """Adds values on first use, so that a file holds only what its operators touch."""

    def __init__(self, lowered: Values, method: ir.Method) -> None:
        self.program = ir.Program(methods=[method])
        self.method = method
        self._lowered = lowered
        self.names: dict[int, str] = {}  # of values: an input, a node of the graph, a constant
        self._values: dict[Any, int] = {}
        self._constants: dict[Any, int] = {}

    def input(self, ref: Ref, name: str) -> None:
        """Makes `ref` the next input of the method."""
        self.method.inputs.append(self._add(ref, ir.ValueKind.input, name))

    def state(self, node: Node) -> int:
        """The state of a placeholder; its initial value is a constant unless it is all zeros."""
        ref = self._lowered.ref(node)
        if ref.made_by not in self._values:
            key, tensor = self._lowered.constants.states[node]
            initial = -1
            if bool(torch.count_nonzero(tensor)):
                initial = self._constant(f"{key}.initial", ref.dtype, ref.shape, lambda: tensor)
            self.program.states.append(ir.State(key, initial))
            self._add(ref, ir.ValueKind.state, key, len(self.program.states) - 1)
        return self._values[ref.made_by]

    def value(self, ref: Ref) -> int:
        """The number of a value, made on first use."""
        made_by = ref.made_by
        if isinstance(made_by, Result) and made_by.node in self._lowered.constants.states:
            return self.state(made_by.node)
        if ref.is_constant:
            return self._constant_value(ref)
        if ref.made_by not in self._values:
            self._add(ref, ir.ValueKind.scratch, "")
        return self._values[ref.made_by]

    def output(self, ref: Ref, name: str) -> None:
        """Makes `ref` the next output; an input, a constant, a state, or what is an output already is copied first."""
        index = self.value(ref)
        if self.method.values[index].kind is not ir.ValueKind.scratch:
            index = self.copy(ref, index)
        self.method.values[index].kind = ir.ValueKind.output
        self.method.values[index].name = name
        self.method.outputs.append(index)

    def update(self, placeholder: Node, ref: Ref) -> None:
        """After a run the state, or in the next step of a call the input, holds `ref`."""
        index, target = self.value(ref), self.value(self._lowered.ref(placeholder))
        if index == target:
            return
        if self.method.values[index].kind not in (ir.ValueKind.scratch, ir.ValueKind.output):
            index = self.copy(ref, index)
        self.method.updates.append((target, index))

    def copy(self, ref: Ref, index: int) -> int:
        """A fresh value with the contents of value `index`. The graph copies what a view cannot keep: an old state."""
        fresh = self._add(Ref(Temporary(), ref.dtype, ref.shape), ir.ValueKind.scratch, "")
        sizes = list(self.method.values[fresh].dims)
        self.method.ops.append(ir.OpCall("view", 1, [ir.ValueId(index), sizes], [fresh]))
        return fresh

    def call(self, emitted: Emitted, where: str) -> None:
        """Adds an operator call. `where`: the line of the user's model."""
        args = [self._arg(arg) for arg in emitted.args]
        outputs = [self.value(ref) for ref in emitted.outputs]
        self.method.ops.append(ir.OpCall(emitted.op, emitted.version, args, outputs, where))

    def _arg(self, arg: Any) -> ir.Arg:
        if isinstance(arg, list):
            return [self._arg(item) for item in arg]
        return ir.ValueId(self.value(arg)) if isinstance(arg, Ref) else arg

    def _add(self, ref: Ref, kind: ir.ValueKind, name: str, index: int = -1) -> int:
        dims = [self._lowered.sizes.size(size) for size in ref.shape]
        self._values[ref.made_by] = len(self.method.values)
        self.names[len(self.method.values)] = name or _node_name(ref)
        self.method.values.append(ir.Value(kind, ref.dtype, dims, index, name))
        return self._values[ref.made_by]

    def _constant_value(self, ref: Ref) -> int:
        name = (ref.key, ref.dtype, ref.shape)
        if name not in self._values:
            if ref.node is None:
                data = self._lowered.data[ref.key][1]
            else:
                data = lambda node=ref.node: self._lowered.constants.value(node)  # noqa: E731
            constant = self._constant(ref.key, ref.dtype, ref.shape, data, ref.node)
            self._values[name] = self._add(ref, ir.ValueKind.constant, ref.key, constant)
        return self._values[name]

    def _constant(
        self, key: str, dtype: ir.DType, shape: Any, data: Callable[[], Any], node: Node | None = None
    ) -> int:
        if key not in self._constants:
            if dtype is ir.DType.i64:
                _check_int32(key, data(), source(node, self._lowered.origins) if node is not None else "")
            size = file_bytes(dtype, shape)
            self._constants[key] = len(self.program.constants)
            self.program.constants.append(ir.Constant(key, size, lambda: constant_bytes(data(), dtype, shape)))
        return self._constants[key]


def _node_name(ref: Ref) -> str:
    made_by = ref.made_by
    if not isinstance(made_by, Result):
        return ""
    return f"{made_by.node.name}.{made_by.index}" if made_by.index else made_by.node.name


def constant_bytes(data: Any, dtype: ir.DType, shape: Any) -> bytes:
    """The bytes of a constant in the file, from bytes or from a tensor that is converted to `dtype`."""
    if isinstance(data, torch.Tensor):
        data = pack(data.detach().to("cpu", TORCH[dtype]).reshape(shape).contiguous().numpy(), dtype)
    elif isinstance(data, np.ndarray):
        data = pack(data.reshape(shape), dtype)
    if len(data) != file_bytes(dtype, shape):
        raise AssertionError(
            f"a constant of {dtype.name}{list(shape)} has {len(data)} bytes, not {file_bytes(dtype, shape)}"
        )
    return bytes(data)


def _check_int32(key: str, data: Any, where: Any) -> None:
    """i64 is 32 bits wide on the device: a constant beyond is refused, with the value."""
    if isinstance(data, torch.Tensor) and data.numel():
        low, high = int(data.min()), int(data.max())
        if low < -(2**31) or high >= 2**31:
            worst = high if high >= 2**31 else low
            text = f"the int64 constant '{key}' holds {worst}, which does not fit the 32-bit integers of the device"
            text = f"{where}: {text}" if str(where) else text
            raise UnsupportedError(text, [text], code="BadDtype", path=key)
