# SPDX-License-Identifier: Apache-2.0
"""Which nodes are constants, and their values.

A node whose inputs are all constants is one, too: its value is computed by torch when the file is written. Two things
are not folded: a dequantized weight (it would undo the quantization) and what is much larger than what it is made from.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind
from torch.fx import Node
from torch.fx.node import map_arg

from pumice.lowering.subgraph import Subgraph

_FREE_BYTES = 1 << 20  # a result up to this size is always folded
_GROWTH = 2  # a larger one may take this many times the bytes of its inputs
_OF_STRIDES = (torch.ops.aten.view.default, torch.ops.aten.view.dtype, torch.ops.aten._unsafe_view.default)
_STORED = (InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR)


class Constants:
    """The constants of a program, and its states: the parameters and buffers that it mutates."""

    def __init__(
        self, program: ExportedProgram | Subgraph, weights: Mapping[str, Callable[[], torch.Tensor]] | None = None
    ) -> None:
        signature = program.graph_signature
        mutated = {*signature.buffers_to_mutate.values(), *getattr(signature, "parameters_to_mutate", {}).values()}
        placeholders = {node.name: node for node in program.graph.nodes if node.op == "placeholder"}
        self.states: dict[Node, tuple[str, torch.Tensor]] = {}
        self._stored: dict[Node, tuple[str, torch.Tensor]] = {}
        self._folded: set[Node] = set()
        self._cache: dict[Node, Any] = {}
        self._weights = dict(weights or {})  # what reads a tensor when it is asked for, by name
        equal = _Equal()
        for spec in signature.input_specs:
            if spec.kind not in _STORED:
                continue
            tensor = program.state_dict.get(spec.target, program.constants.get(spec.target))
            node = placeholders[spec.arg.name]
            if spec.target in mutated:
                order = node.meta.get("order")  # of the dimensions, where it is not the buffer's: passes/llama.py
                self.states[node] = (spec.target, tensor if order is None else tensor.permute(order))
            elif isinstance(tensor, torch.Tensor):
                own = spec.target in self._weights  # its values are not here
                self._stored[node] = (spec.target if own else equal.key(tensor, spec.target), tensor)
        for node in program.graph.nodes:
            if node.op == "call_function" and self._foldable(node):
                self._folded.add(node)

    def __contains__(self, node: Node) -> bool:
        return node in self._stored or node in self._folded

    def is_folded(self, node: Node) -> bool:
        """Whether a node is a constant that is computed from others."""
        return node in self._folded

    def key(self, node: Node) -> str:
        """A name of the constant in the file: the parameter's, or one made from the node that was folded."""
        return self._stored[node][0] if node in self._stored else f"folded.{node.name}"

    def value(self, node: Node) -> Any:
        """The tensor (for a node with several results: tensors) of a constant node."""
        if node in self._stored:
            return self._read(*self._stored[node])
        if node in self._cache:
            return self._cache[node]
        read = self._contiguous if node.target in _OF_STRIDES else self.value
        args = map_arg(node.args, read)
        kwargs = map_arg(node.kwargs, read)
        with torch.no_grad():
            value = node.target(*args, **kwargs)
            if "empty" in getattr(node.target, "__name__", ""):
                value.zero_()  # what lies in the memory of this process does not go into a file
        if _bytes(node.meta["val"]) <= _FREE_BYTES:
            self._cache[node] = value
        return value

    def _contiguous(self, node: Node) -> Any:
        """The graph's copies are gone (passes/normalize.py), so that a value may have other strides than there."""
        value = self.value(node)
        return value.contiguous() if isinstance(value, torch.Tensor) else value

    def _read(self, name: str, placeholder: torch.Tensor) -> torch.Tensor:
        if name not in self._weights:
            return placeholder.detach()
        tensor = self._weights[name]()
        if (tensor.shape, tensor.dtype) != (placeholder.shape, placeholder.dtype):
            text = f"the weight '{name}' is {tensor.dtype}{list(tensor.shape)}, the module has "
            raise ValueError(f"{text}{placeholder.dtype}{list(placeholder.shape)}")
        return tensor

    def _foldable(self, node: Node) -> bool:
        size = _bytes(node.meta.get("val"))
        if size is None or not all(source in self for source in node.all_input_nodes):
            return False
        if node.target is operator.getitem:
            return True
        target = node.target
        if (
            not isinstance(target, torch._ops.OpOverload)
            or target._schema.is_mutable
            or "dequantize" in target._schema.name
            or "as_strided" in target._schema.name  # of strides that the graph no longer has
        ):
            return False
        if torch.Tag.nondeterministic_seeded in target.tags:
            return False
        inputs = sum(_bytes(source.meta["val"]) or 0 for source in node.all_input_nodes)
        return size <= max(_FREE_BYTES, _GROWTH * inputs)


class _Equal:
    """Names of tensors by their bits: the file holds once what an embedding and its head share, or have as copies.

    Vectors (biases, norms) are shared by identity only: they are small, and keep their own names.
    """

    def __init__(self) -> None:
        self._same: dict[Any, str] = {}
        self._alike: dict[Any, list[tuple[str, torch.Tensor]]] = {}

    def key(self, tensor: torch.Tensor, name: str) -> str:
        """`name`, or that of the first tensor with the same bits."""
        if tensor.is_complex():  # never in a file: its parts are
            return name
        if type(tensor) not in (torch.Tensor, torch.nn.Parameter) or tensor.device.type != "cpu" or not tensor.numel():
            return name
        shape = tuple(tensor.shape), tensor.dtype
        same = tensor.data_ptr(), tensor.stride(), *shape
        if same not in self._same:
            self._same[same] = self._alike_key(tensor.detach(), name, shape)
        return self._same[same]

    def _alike_key(self, tensor: torch.Tensor, name: str, shape: Any) -> str:
        if tensor.dim() < 2 or tensor.layout is not torch.strided:
            return name
        start = _bits(tensor[(0,) * (tensor.dim() - 1)])  # of the first row: cheap to read, and seldom equal
        alike = self._alike.setdefault((*shape, start[:64].numpy().tobytes()), [])
        for other, known in alike:
            if torch.equal(_bits(known), _bits(tensor)):
                return other
        alike.append((name, tensor))
        return name


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.contiguous().view(torch.uint8)


def _bytes(value: Any) -> int | None:
    """Bytes of a tensor or of several; None when there is none or a dimension is symbolic."""
    if isinstance(value, list | tuple) and value:
        sizes = [_bytes(item) for item in value]
        return None if None in sizes else sum(sizes)
    if not isinstance(value, torch.Tensor) or any(isinstance(size, torch.SymInt) for size in value.shape):
        return None
    return value.numel() * value.element_size()
