# SPDX-License-Identifier: Apache-2.0
"""Chooses what runs: demand starts at the outputs and the mutated buffers and walks back through the records.

A node that nobody demanded was computed inside of another ("fused"), or is needed by nobody. Operator calls come out in
the order of the graph, the calls of one node in the order in which its record made them.
"""

from __future__ import annotations

import heapq
import operator
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx import Node

from pumice.errors import Error
from pumice.format import ir
from pumice.format.dtypes import device_dtype
from pumice.lowering import quantized as quant
from pumice.lowering import shapes
from pumice.lowering.call import Call, Emitted, Ref
from pumice.lowering.folding import Constants
from pumice.lowering.options import ExportOptions
from pumice.lowering.part import Part
from pumice.lowering.registry import Refused, record_for
from pumice.lowering.source import source


class Selection:
    """The state of one lowering; `select` fills `blocks` and `refused`."""

    def __init__(
        self,
        program: ExportedProgram | Part,
        options: ExportOptions,
        sizes: shapes.Sizes,
        origins: Mapping[str, str] | None = None,
    ) -> None:
        self.constants = Constants(program)
        self.origins = origins or {}  # stack traces by node name before decomposition
        self.sizes = sizes
        self.options = options
        self.notes: dict[str, None] = {}  # an ordered set
        self.data: dict[str, tuple[Ref, Callable[[], Any]]] = {}  # constants that records made, by key
        self.blocks: dict[Node, list[Emitted]] = {}
        self.refused: dict[Node, str] = {}
        self.fused_by: dict[Node, Node] = {}
        self.order = {node: index for index, node in enumerate(program.graph.nodes)}
        self._waiting: list[tuple[int, Node]] = []
        self._demanded: set[Node] = set()
        self._guards = _Guards(program)

    # ---- for Call ----------------------------------------------------------------------------------------------------

    def ref(self, node: Node, index: int = 0) -> Ref:
        """The tensor that `node` makes (result number `index`); a getitem is result number n of what it takes from."""
        value = node.meta["val"]
        if isinstance(value, list | tuple):
            value = value[index]
        maker = node
        if node.target is operator.getitem and isinstance(node.args[1], int):
            maker, index = node.args[0], node.args[1]
        constant = node in self.constants
        shape = tuple(map(shapes.plain, value.shape))
        if value.dtype is torch.float64 and quant.is_choose_qparams(maker.target):
            # Computed in fp32 or fp16 and kept in fp64: fp32 holds the same numbers.
            return Ref((maker, index), ir.DType.f32, shape, node, torch_dtype=value.dtype)
        if constant:
            key = self.constants.key(node)
            return Ref(
                ("constant", key), self.dtype(value.dtype, constant and not shape), shape, node, True, key, value.dtype
            )
        return Ref((maker, index), self.dtype(value.dtype), shape, node, torch_dtype=value.dtype)

    def dtype(self, dtype: torch.dtype, literal: bool = False) -> ir.DType:
        """What `dtype` is on the device. `literal`: a constant of no dimensions, which takes part as a number does."""
        known = device_dtype(dtype, self.options)
        if dtype is torch.bfloat16:
            self.notes[f"bfloat16 tensors, inputs and results included, are {known.name} on the device"] = None
        if known is None and dtype is torch.float64 and literal:
            self.notes["float64 constants without dimensions are kept as f32"] = None
            known = ir.DType.f32
        if known is None:
            raise Refused(f"tensors of {dtype} are not supported (f32, f16, bf16, i64, i32, i8, u8 and bool are)")
        return known

    def add_constant(self, ref: Ref, data: Callable[[], Any]) -> None:
        known = self.data.setdefault(ref.key, (ref, data))[0]
        if (known.dtype, known.shape) != (ref.dtype, ref.shape):
            raise AssertionError(
                f"two different constants '{ref.key}': {known.dtype}{known.shape}, {ref.dtype}{ref.shape}"
            )

    def constant_value(self, ref: Ref) -> Any:
        if ref.node is not None:
            return self.constants.value(ref.node)
        return self.data[ref.key][1]()

    # ---- the walk ----------------------------------------------------------------------------------------------------

    def demand(self, node: Node) -> None:
        """Asks for the results of `node` (nothing to do for inputs, states and constants)."""
        if node.target is operator.getitem:
            node = node.args[0]
        if node.op != "placeholder" and node not in self.constants and node not in self._demanded:
            self._demanded.add(node)
            heapq.heappush(self._waiting, (-self.order[node], node))

    def select(self) -> None:
        """Lowers every demanded node, last first; a node is visited when all that could ask for it have been."""
        while self._waiting:
            node = heapq.heappop(self._waiting)[1]
            try:
                self.blocks[node] = self._lower(node)
            except Refused as refusal:
                self.refused[node] = str(refusal)
                self._look_behind(node)

    def _lower(self, node: Node) -> list[Emitted]:
        if node.op != "call_function":
            raise Refused(f"{node.op} nodes (submodules, control flow) are not supported")
        record = record_for(node.target)
        if record is None:
            raise Refused(_no_record(node))
        call = Call(self, node)
        try:
            with self._guards:
                record(call)
        except Refused:
            raise
        except Exception as error:
            raise Error(
                f"the record of {node.target} failed at {source(node, self.origins)}: {error!r}",
                stage="lower",
                path=node.name,
            ) from error
        for emitted in call.emitted:
            for ref in refs(emitted.args):
                if isinstance(ref.identity, tuple) and isinstance(ref.identity[0], Node):
                    self.demand(ref.identity[0])
        for other in call.looked_through:
            self.fused_by.setdefault(other, node)
        return call.emitted

    def _look_behind(self, node: Node) -> None:
        """After a refusal: visits the inputs all the same, so that every refusal of the model is told at once."""
        for before in node.all_input_nodes:
            if quant.is_dequantize(before.target):
                self._look_behind(before)
            elif _makes_tensor(before):
                self.demand(before)


class _Guards:
    """Notices a record that decided something by the example's value of a symbolic size: wrong for other values."""

    def __init__(self, program: ExportedProgram | Part) -> None:
        self._env = None
        for node in program.graph.nodes:
            value = node.meta.get("val")
            sizes = [value] if isinstance(value, torch.SymInt) else getattr(value, "shape", ())
            for size in sizes:
                if isinstance(size, torch.SymInt):
                    self._env = size.node.shape_env

    def _count(self) -> int:
        return len(self._env.guards) + self._env.counter["ignored_backward_guard"] if self._env else 0

    def __enter__(self) -> None:
        self._before = self._count()

    def __exit__(self, kind: Any, *_: Any) -> None:
        if kind is None and self._count() != self._before:
            guard = self._env.guards[-1].expr if self._env.guards else "a guard"
            raise Refused(f"it would hold only for some input sizes: {guard}")


def refs(args: list[Any]) -> list[Ref]:
    """The tensors among encoded arguments."""
    return [item for arg in args for item in (arg if isinstance(arg, list) else [arg]) if isinstance(item, Ref)]


def _makes_tensor(node: Node) -> bool:
    value = node.meta.get("val")
    return isinstance(value, torch.Tensor) or (isinstance(value, list | tuple) and bool(value))


def _no_record(node: Node) -> str:
    if isinstance(node.target, torch._ops.HigherOrderOperator):
        return f"{node.target} (control flow or a wrapped region) is not supported"
    if quant.is_dequantize(node.target):
        users = ", ".join(sorted({str(user.target) for user in node.users}))
        return f"a quantized tensor is used by {users}, which has no quantized form here"
    return "no operator computes this"
