# SPDX-License-Identifier: Apache-2.0
"""ExportOptions(precision="fp16"): a module as module.half() computes it; its inputs and results keep their dtypes."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, OutputKind, TensorArgument
from torch.fx import Node
from torch.utils._pytree import tree_map_only

from pumice.errors import InvalidInputError, UnsupportedError
from pumice.lowering.capture import capture
from pumice.lowering.source import source

aten = torch.ops.aten
# Of tensors of one dtype, which is not checked by the capture.
_PRODUCTS = frozenset(
    {
        *(aten.linear.default, aten.matmul.default, aten.mm.default, aten.bmm.default, aten.addmm.default),
        *(aten.conv1d.default, aten.conv2d.default, aten.conv3d.default, aten.conv1d.padding, aten.conv2d.padding),
        *(aten.conv_transpose1d.default, aten.conv_transpose2d.input, aten.conv_transpose3d.input),
    }
)


@dataclass(frozen=True)
class Ends:
    """The dtypes of a program's tensor inputs and results, in order."""

    inputs: list[torch.dtype]
    results: list[torch.dtype]


def ends_of(program: ExportedProgram) -> Ends:
    """Of a captured program."""
    return Ends([_dtype(node) for node in _inputs(program)], [_dtype(node) for node in _results(program)])


def capture_half(
    module: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], dynamic_shapes: Any, strict: bool
) -> ExportedProgram:
    """The program of module.half() called with inputs in fp16.

    A graph in fp32 is not enough: it does not tell x.float(), which stays, from x.to(weight.dtype).
    """
    if not isinstance(module, torch.nn.Module):
        text = 'precision="fp16" needs the torch.nn.Module: an exported program has its dtypes; export module.half()'
        raise InvalidInputError(text, code="InvalidArgument", path="precision")
    args, kwargs = tree_map_only(torch.Tensor, _half, (tuple(args), dict(kwargs)))
    program = capture(_copy(module), args, kwargs, dynamic_shapes, strict)
    for node in program.graph.nodes:
        given = [each.meta["val"] for each in node.all_input_nodes] if node.target in _PRODUCTS else []
        kinds = {str(value.dtype) for value in given if isinstance(value, torch.Tensor)}
        if len(kinds) > 1:
            mixed = f"{node.target} of {' and '.join(sorted(kinds))}"
            text = (
                f"{source(node)}: {mixed}, which PyTorch refuses as well after module.half(): cast in the model, or "
                'leave precision="fp16" out'
            )
            text = text.removeprefix(": ")  # no line is known
            raise UnsupportedError(text, [text], code="InvalidArgument", path="precision")
    return program


def cast_ends(program: ExportedProgram, ends: Ends) -> None:
    """Gives the inputs and results of a decomposed program the dtypes of `ends`: casts after those, before these."""
    inputs = _inputs(program)
    begin = next(node for node in program.graph.nodes if node.op != "placeholder")
    for node, dtype in zip(inputs, ends.inputs, strict=True):
        if _dtype(node) is not dtype:
            with program.graph.inserting_before(begin):
                cast = _cast(node, _dtype(node))
            node.replace_all_uses_with(cast, delete_user_cb=lambda user, cast=cast: user is not cast)
            node.meta["val"] = node.meta["val"].to(dtype)
    wanted = dict(zip((node.name for node in inputs), ends.inputs, strict=True))
    _cast_results(program, wanted, ends.results)


def _cast_results(program: ExportedProgram, inputs: dict[str, torch.dtype], results: list[torch.dtype]) -> None:
    """`inputs`: the dtypes of inputs by name, for what is written into them."""
    found = _results(program)
    if len(found) != len(results):
        text = f"the model has {len(results)} results and in fp16 {len(found)}: export module.half()"
        raise UnsupportedError(text, [text], code="InvalidArgument", path="precision")
    rest, output = iter(results), next(node for node in program.graph.nodes if node.op == "output")
    nodes = list(output.args[0])
    for index, spec in enumerate(program.graph_signature.output_specs):
        node = nodes[index]
        if spec.kind is OutputKind.USER_OUTPUT and isinstance(spec.arg, TensorArgument):
            dtype = next(rest)
        elif spec.kind is OutputKind.USER_INPUT_MUTATION:
            dtype = inputs[spec.target]
        else:
            continue
        if _dtype(node) is not dtype:
            with program.graph.inserting_before(output):
                nodes[index] = _cast(node, dtype)
            spec.arg = TensorArgument(name=nodes[index].name)
    output.args = (tuple(nodes),)


def _copy(module: torch.nn.Module) -> torch.nn.Module:
    """module.half(), with `module` as it was; only the weights in fp16 take memory."""
    known: dict[int, Any] = {id(buffer): buffer for buffer in module.buffers()}
    for parameter in module.parameters():
        known[id(parameter)] = torch.nn.Parameter(parameter.detach(), requires_grad=False)
    try:
        return copy.deepcopy(module, known)._apply(_half)
    except Exception as error:
        text = f"{type(module).__name__} cannot be copied to become fp16 ({error}): export module.half()"
        raise UnsupportedError(text, [text], code="InvalidArgument", path="precision") from error


def _cast(node: Node, dtype: torch.dtype) -> Node:
    cast = node.graph.call_function(aten._to_copy.default, (node,), {"dtype": dtype})
    cast.meta["val"] = node.meta["val"].to(dtype)
    return cast


def _half(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.to(torch.float16) if tensor.is_floating_point() else tensor


def _dtype(node: Node) -> torch.dtype:
    return node.meta["val"].dtype


def _inputs(program: ExportedProgram) -> list[Node]:
    nodes = {node.name: node for node in program.graph.nodes if node.op == "placeholder"}
    specs = [spec for spec in program.graph_signature.input_specs if spec.kind is InputKind.USER_INPUT]
    return [nodes[spec.arg.name] for spec in specs if isinstance(spec.arg, TensorArgument)]


def _results(program: ExportedProgram) -> list[Node]:
    nodes = next(node for node in program.graph.nodes if node.op == "output").args[0]
    specs = program.graph_signature.output_specs
    return [
        node
        for spec, node in zip(specs, nodes, strict=True)
        if spec.kind is OutputKind.USER_OUTPUT and isinstance(spec.arg, TensorArgument)
    ]
