# SPDX-License-Identifier: Apache-2.0
"""Complex tensors -> pairs of real ones: Pumice has no complex dtype.

Every node that makes a complex tensor gets two real ones in front of it. What has no such form stays, reads its inputs
by aten.complex, and is refused by its name. Products do not multiply by the zero that the imaginary part of a real
number is: with infinite elements eager PyTorch makes NaN there.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, InputSpec, TensorArgument
from torch.fx import Node
from torch.fx.node import map_arg

from pumice.passes import complex_arithmetic, fourier
from pumice.passes.rewrite import Before, arguments, change, value_of

aten = torch.ops.aten
Pair = tuple[Node, Node]
TRANSFORMS = (aten._fft_r2c.default, aten._fft_c2c.default, aten._fft_c2r.default)
_STORED = (InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR)
# The same of both parts; other arguments are no tensors, or real ones.
_EACH = {
    "aten::" + name
    for name in [
        "_unsafe_view",
        "alias",
        "cat",
        "clone",
        "contiguous",
        "cumsum",
        "detach",
        "diagonal",
        "expand",
        "flip",
        "gather",
        "index",
        "index_select",
        "lift_fresh_copy",
        "mean",
        "neg",
        "permute",
        "repeat",
        "reshape",
        "roll",
        "select",
        "slice",
        "split",
        "split_with_sizes",
        "squeeze",
        "stack",
        "sum",
        "t",
        "transpose",
        "unbind",
        "unfold",
        "unsqueeze",
        "view",
    ]
}
_PADS = (aten.constant_pad_nd.default, aten.pad.default)


def complex_to_pairs(program: ExportedProgram) -> None:
    """Rewrites the graph of `program` in place, and adds the constants of its transforms."""
    if any(is_complex(node) for node in program.graph.nodes):
        _Rewriting(program).run()


def _has_complex(values: Iterable[Any]) -> bool:
    """Whether there is a complex tensor among example values, or in lists of them."""
    return any(
        value.is_complex()
        if isinstance(value, torch.Tensor)
        else isinstance(value, list | tuple) and _has_complex(value)
        for value in values
    )


def is_complex(node: Node) -> bool:
    """Whether its result is complex, or has a complex tensor in it."""
    return _has_complex([node.meta.get("val")])


class _Rewriting:
    def __init__(self, program: ExportedProgram) -> None:
        self._program, self._graph = program, program.graph
        self._pairs: dict[Node, Pair] = {}
        self._replaced: set[Node] = set()
        self._constants: set[Node] = set()
        self._stored: dict[str, Node] = {}
        signature = program.graph_signature
        changed = set(signature.buffers_to_mutate.values())
        self._inputs = {spec.arg.name for spec in signature.input_specs if spec.kind in _STORED} - {
            spec.arg.name for spec in signature.input_specs if spec.target in changed
        }

    def run(self) -> None:
        nodes = list(self._graph.nodes)
        first = next(node for node in nodes if node.op != "placeholder")
        for node in nodes:
            if node.op == "placeholder":
                if node.name in self._inputs:
                    self._constants.add(node)
                    if is_complex(node):
                        self._pairs[node] = _parts(Before(first, node), node)
                continue
            if node.op == "call_function" and all(source in self._constants for source in node.all_input_nodes):
                self._constants.add(node)
            if is_complex(node) or any(source in self._pairs for source in node.all_input_nodes):
                self._rewrite(node)
        for node in reversed(nodes):
            if node.op == "call_function" and (node in self._pairs or node in self._replaced) and not node.users:
                self._graph.erase_node(node)

    def _rewrite(self, node: Node) -> None:
        if node.op == "call_function" and not isinstance(node.meta.get("val"), torch.Tensor | list | tuple):
            for source in node.all_input_nodes:  # a size, or an assertion
                if source in self._pairs and isinstance(value_of(source), torch.Tensor) and "val" in node.meta:
                    node.replace_input_with(source, self._pairs[source][0])
            return
        made = self._made(node) if node.op == "call_function" else None
        if made is None and node in self._constants and isinstance(value_of(node), torch.Tensor):
            made = _parts(_after(node), node) if is_complex(node) else None
        elif made is None:
            self._join(node)
        if isinstance(made, Node):
            node.replace_all_uses_with(made)
            self._replaced.add(node)
        elif made is not None:
            self._pairs[node] = made

    def _made(self, node: Node) -> Pair | Node | None:
        """What stands for the node: a pair, one node where its result is real, or None where there is no such form."""
        before = Before(node, _tensor_of(node))
        try:
            made = self._form(node, before)
        except (RuntimeError, TypeError, IndexError, ValueError, NotImplementedError):  # of torch, for example tensors
            return None
        if isinstance(made, tuple) and isinstance(value_of(node), torch.Tensor):
            return tuple(complex_arithmetic.fit(before, part, value_of(node)) for part in made)
        return made

    def _form(self, node: Node, before: Before) -> Pair | Node | None:
        target, pairs = node.target, self._pairs
        if target in TRANSFORMS:
            return self._transform(node, before)
        if target is aten.view_as_real.default and node.args[0] in pairs:
            return self._as_real(node, before)
        if target is operator.getitem or self._is_each(node):
            return tuple(self._each(node, before, part) for part in (0, 1))
        rule = complex_arithmetic.RULES.get(target)
        return None if rule is None else rule(before, arguments(node), lambda value: _operand(value, pairs))

    def _is_each(self, node: Node) -> bool:
        if node.target in _PADS:
            given = arguments(node)
            return not given.get("value") and node.args[0] in self._pairs
        schema = getattr(node.target, "_schema", None)
        return schema is not None and schema.name in _EACH and not node.kwargs.get("dtype")

    def _each(self, node: Node, before: Before, part: int) -> Node:
        """The operator for one part. The parts have strides of their own: a view becomes a reshape. Real tensors that
        are joined with complex ones have zeros as their imaginary part."""
        views = (aten.view.default, aten._unsafe_view.default)
        target = aten.reshape.default if node.target in views else node.target
        swap = lambda source: self._pairs[source][part] if source in self._pairs else source  # noqa: E731
        data, *rest = node.args
        if part == 1 and isinstance(data, list | tuple):
            data = [x if x in self._pairs else before.call(aten.zeros_like.default, x) for x in data]
        args, kwargs = map_arg(((data, *rest), dict(node.kwargs)), swap)
        return before.call(target, *args, **kwargs)

    def _transform(self, node: Node, before: Before) -> Pair | Node | None:
        x = node.args[0]
        if not fourier.transforms(node):
            return None
        if node.target is aten._fft_r2c.default:
            return fourier.r2c(node, x, before, self._store)
        if x not in self._pairs:
            return None
        form: Callable = fourier.c2c if node.target is aten._fft_c2c.default else fourier.c2r
        return form(node, self._pairs[x], before, self._store)

    def _as_real(self, node: Node, before: Before) -> Node:
        """Both parts beside each other; who wants one of them takes it as it is."""
        last = value_of(node).dim() - 1
        for user in list(node.users):
            negated = user.target is aten._neg_view.default
            if negated:
                change(user, aten.neg.default, node)
            if user.target is aten.select.int and user.args[1] in (last, -1):
                user.replace_all_uses_with(self._pairs[node.args[0]][user.args[2]])
        parts = [before.call(aten.unsqueeze.default, part, -1) for part in self._pairs[node.args[0]]]
        return before.call(aten.cat.default, parts, -1)

    def _join(self, node: Node) -> None:
        """What stays reads complex tensors that are made of the parts."""
        before = Before(node, _tensor_of(node))
        joined: dict[Node, Node] = {}
        for source in dict.fromkeys(node.all_input_nodes):
            if source in self._pairs and isinstance(value_of(source), torch.Tensor):
                joined[source] = before.call(aten.complex.default, *self._pairs[source])
        for source, made in joined.items():
            node.replace_input_with(source, made)

    def _store(self, name: str, make: Callable[[], torch.Tensor]) -> Node:
        """A constant of the program, in f32."""
        name = f"pumice.{name}"
        if name not in self._stored:
            program, signature = self._program, self._program.graph_signature
            tensor = make().to(torch.float32)
            with self._graph.inserting_before(next(iter(self._graph.nodes))):
                node = self._graph.placeholder(name.replace(".", "_"))
            like = next(n.meta["val"] for n in self._graph.nodes if isinstance(n.meta.get("val"), torch.Tensor))
            node.meta["val"] = like.new_empty(list(tensor.shape), dtype=torch.float32)
            program.state_dict[name] = tensor
            signature.input_specs.insert(0, InputSpec(InputKind.BUFFER, TensorArgument(node.name), name, True))
            self._stored[name] = node
        return self._stored[name]


def _operand(value: Any, pairs: dict[Node, Pair]) -> complex_arithmetic.Operand:
    if isinstance(value, complex):
        return value.real, value.imag
    return pairs[value] if isinstance(value, Node) and value in pairs else (value, None)


def _parts(before: Before, node: Node) -> Pair:
    """Those of a complex constant, which are folded."""
    if value_of(node).is_conj():
        node = before.call(aten.resolve_conj.default, node)
    both = before.call(aten.view_as_real.default, node)
    return tuple(before.call(aten.select.int, both, -1, part) for part in (0, 1))


def _after(node: Node) -> Before:
    return Before(node.next, _tensor_of(node))


def _tensor_of(node: Node) -> Node:
    """A node of a tensor, to make others like it: `node`, or one of those it reads."""
    return next(n for n in (node, *node.all_input_nodes) if isinstance(n.meta.get("val"), torch.Tensor))
