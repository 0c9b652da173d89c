# SPDX-License-Identifier: Apache-2.0
"""`Call`: one node of the exported graph and the means to lower it. selection.py is its driver."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, Protocol

import torch
from torch.fx import Node

from pumice.format.dtypes import TORCH
from pumice.format.ir import DType
from pumice.lowering import sizes
from pumice.lowering.ref import Ref, Stored, Temporary
from pumice.lowering.registry import Refused

Number = bool | int | float
_SCALAR_TYPES = {
    0: torch.uint8,
    1: torch.int8,
    3: torch.int32,
    4: torch.int64,
    5: torch.float16,
    6: torch.float32,
    7: torch.float64,
}


@dataclass
class Emitted:
    """One operator call of a lowering, with its arguments already in the file's kinds but for Refs."""

    op: str
    version: int
    args: list[Any]
    outputs: list[Ref]


class Driver(Protocol):
    """What a Call needs of the driver."""

    def ref(self, node: Node, index: int = 0) -> Ref:
        """The tensor that `node` makes, result number `index`."""

    def dtype(self, dtype: torch.dtype) -> DType:
        """What tensors of a torch dtype are on the device; raises Refused where there is no such thing."""

    def add_constant(self, ref: Ref, data: Callable[[], Any]) -> None:
        """Makes a constant known under the key of `ref`."""

    def constant_value(self, ref: Ref) -> torch.Tensor:
        """The values of a constant."""

    def encode(self, op: str, version: int, args: list[Any], outputs: list[Ref]) -> list[Any]:
        """The arguments as the file holds them; raises Refused when the operator cannot run with them."""

    def match(self, call: Call) -> Callable[[], Any] | None:
        """What emits the fusion pattern that ends in the node of `call`; None where no pattern matches."""

    def is_left_out(self, pattern: str) -> bool:
        """Whether ExportOptions.without_fusion names the pattern."""


class Call:
    """One node and the means to lower it. Arguments are read by their names in the operator's schema."""

    def __init__(self, driver: Driver, node: Node, root: Call | None = None) -> None:
        self.node = node
        self.target = node.target
        self._driver = driver
        self._root = root or self
        self.emitted: list[Emitted] = []
        self.looked_through: list[Node] = []  # nodes that this lowering may have fused
        self._arguments: dict[str, Any] | None = None

    # ---- reading -----------------------------------------------------------------------------------------------------

    def __getitem__(self, name: str) -> Any:
        """The argument of that name, or the schema's default; tensors are Refs, sizes ints or SymInts."""
        arguments = self._bound()
        if name not in arguments:
            raise KeyError(f"{self.target} has no argument '{name}' (it has {', '.join(arguments)})")
        return self._read(arguments[name])

    def has(self, name: str) -> bool:
        """Whether the argument exists and is not None."""
        return self._bound().get(name) is not None

    def tensor(self, name: str) -> Ref:
        """The argument of that name, a tensor; refuses anything else."""
        value = self[name]
        if not isinstance(value, Ref):
            self.refuse(f"the argument '{name}' is {value!r}, not a tensor")
        return value

    @property
    def out(self) -> Ref:
        """The node's own (first) result."""
        return self.outs[0]

    @property
    def outs(self) -> list[Ref]:
        """All results of the node."""
        value = self.node.meta.get("val")
        if not isinstance(value, list | tuple):
            return [self._driver.ref(self.node)]
        return [self._driver.ref(self.node, index) for index in range(len(value))]

    def producer(self, ref: Ref, *targets: Any, single_use: bool = False) -> Call | None:
        """A Call for the node that makes `ref` if its target is one of `targets` (overloads, or their names).

        Constant nodes count, too: a transposed weight is not written when the lowering takes the tensor before it.
        """
        node = ref.node
        if node is None or node.op != "call_function":
            return None
        if single_use and len(node.users) != 1:
            return None
        made_by = node.args[0] if node.target is operator.getitem else node
        if made_by.target not in targets and str(made_by.target) not in targets:
            return None
        return self._through(node, made_by)

    def matches(self, call: Call) -> bool:
        """Whether a fusion pattern ends in the node of `call`: it will then not run by itself."""
        return self._driver.match(call) is not None

    def is_left_out(self, pattern: str) -> bool:
        """Whether ExportOptions.without_fusion names the pattern: for patterns that other patterns are made of."""
        return self._driver.is_left_out(pattern)

    def value(self, ref: Ref) -> torch.Tensor:
        """The values of a constant, maybe from a disk; to make another constant, call it in the `data` of that."""
        return self._driver.constant_value(ref)

    def promote(self, a: Ref | Number, b: Ref | Number) -> DType:
        """torch's type promotion of two operands."""
        return self.dtype_of(torch.result_type(_sample(a), _sample(b)))

    def dtype_of(self, dtype: torch.dtype | DType) -> DType:
        """What tensors of a torch dtype are on the device; refuses those that are nothing there."""
        return dtype if isinstance(dtype, DType) else self._driver.dtype(dtype)

    # ---- writing -----------------------------------------------------------------------------------------------------

    def emit(self, op: str, *args: Any, out: Ref | Sequence[Ref] | None = None, version: int = 1) -> Any:
        """Adds an operator call and returns its output Ref (several: a list); refuses what the operator cannot run."""
        outputs = self.outs if out is None else [out] if isinstance(out, Ref) else list(out)
        encoded = self._driver.encode(op, version, [self._argument(arg) for arg in args], outputs)
        self._root.emitted.append(Emitted(op, version, encoded, outputs))
        return outputs[0] if len(outputs) == 1 else outputs

    def temp(self, dtype: DType | torch.dtype, shape: Sequence[int | torch.SymInt]) -> Ref:
        """A scratch tensor between the steps of a lowering."""
        return Ref(Temporary(), self.dtype_of(dtype), tuple(map(sizes.plain, shape)))

    def view(self, ref: Ref, shape: Sequence[int | torch.SymInt]) -> Ref:
        """The same elements under another shape; nothing runs."""
        if sizes.same_shape(ref.shape, shape):
            return ref
        return self.emit("view", ref, list(shape), out=self.temp(ref.dtype, shape))

    def cast(self, ref: Ref, dtype: DType | torch.dtype) -> Ref:
        """The tensor in `dtype`: itself, or the result of a cast."""
        dtype = self.dtype_of(dtype)
        return ref if ref.dtype is dtype else self.emit("cast", ref, dtype, out=self.temp(dtype, ref.shape))

    def constant(self, key: str, dtype: DType | torch.dtype, shape: Sequence[int], data: Callable[[], Any]) -> Ref:
        """A new constant; the same key again is the same constant. `data` gives bytes, or a tensor of that shape."""
        ref = Ref(Stored(key), self.dtype_of(dtype), tuple(shape))
        self._driver.add_constant(ref, data)
        return ref

    def refuse(self, reason: str) -> NoReturn:
        """Ends the lowering with a reason that the user will read: raises Refused."""
        raise Refused(reason)

    # ---- inside ------------------------------------------------------------------------------------------------------

    def _bound(self) -> dict[str, Any]:
        if self._arguments is None:
            schema = getattr(self.target, "_schema", None)
            if schema is None:
                self.refuse(f"{self.target} is not an ATen operator")
            self._arguments = {}
            for index, argument in enumerate(schema.arguments):
                if index < len(self.node.args) and not argument.kwarg_only:
                    value = self.node.args[index]
                else:
                    value = self.node.kwargs.get(argument.name, _default(argument))
                self._arguments[argument.name] = value
        return self._arguments

    def _read(self, value: Any) -> Any:
        if isinstance(value, Node):
            example = value.meta.get("val")
            return self._driver.ref(value) if isinstance(example, torch.Tensor) else _plain(example)
        if isinstance(value, list | tuple):
            return [self._read(item) for item in value]
        return _plain(value)

    def _argument(self, value: Any) -> Any:
        """Torch's dtypes become ours, sizes that turn out to be fixed ints; the rest stays."""
        if isinstance(value, list | tuple):
            return [self._argument(item) for item in value]
        return self.dtype_of(value) if isinstance(value, torch.dtype) else _plain(value)

    def _through(self, node: Node, made_by: Node) -> Call:
        self._root.looked_through += [node] if node is made_by else [node, made_by]
        return Call(self._driver, made_by, self._root)


def _default(argument: Any) -> Any:
    """The schema's default; those of dtypes are kept there as numbers."""
    value = argument.default_value
    return _SCALAR_TYPES[value] if isinstance(value, int) and "ScalarType" in str(argument.real_type) else value


def _plain(value: Any) -> Any:
    return sizes.plain(value) if isinstance(value, torch.SymInt) else value


def _sample(operand: Ref | Number) -> torch.Tensor | Number:
    """Something that torch.result_type treats as it would treat `operand`."""
    if not isinstance(operand, Ref):
        return operand
    return torch.empty((1,) * min(operand.rank, 1), dtype=operand.torch_dtype or TORCH[operand.dtype])
