# SPDX-License-Identifier: Apache-2.0
"""A normalized ExportedProgram, or a Subgraph of one -> ir.Program and Report: inputs, results, nesting, states.

`choose` decides for every node without a look at the values of weights; `lower` also makes the program.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import sympy
import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import ConstantArgument, InputKind, OutputKind, TensorArgument
from torch.fx import Node

from pumice.format import ir
from pumice.lowering import sizes
from pumice.lowering.builder import Builder
from pumice.lowering.options import ExportOptions
from pumice.lowering.registry import Refused, rewrites_of_all
from pumice.lowering.report import Report, Row
from pumice.lowering.selection import Chosen, Selection
from pumice.lowering.shapes import Sizes
from pumice.lowering.source import Source, of_layers, source
from pumice.lowering.subgraph import Subgraph
from pumice.lowering.treespec import constant
from pumice.lowering.treespec import nesting as nesting_of
from pumice.lowering.values import Context
from pumice.runtime import nesting

_MUTATIONS = tuple(
    getattr(OutputKind, kind) for kind in ("BUFFER_MUTATION", "PARAMETER_MUTATION") if hasattr(OutputKind, kind)
)


@dataclass(frozen=True)
class Lowered:
    """The program is complete only when the report has no refusals. `names`: of the values of its method by number."""

    program: ir.Program
    report: Report
    names: dict[int, str]


def lower(
    program: ExportedProgram | Subgraph,
    removed: dict[Node, str],
    options: ExportOptions,
    origins: dict[str, str],
    dims: list[dict[int, str]],
) -> Lowered:
    """Lowers every node that the results need.

    removed: nodes that passes took out of the graph, with what they were. origins: stack traces by node name before
    decomposition. dims: for each tensor input the names of its dynamic dimensions.
    """
    chosen = choose(program, options, origins, dims)
    selection, refusals, method = chosen.selection, chosen.refusals, chosen.method
    builder = Builder(selection, method)
    for node, name in zip(chosen.inputs, _name_inputs(program, method), strict=True):
        _try(refusals, node, name, lambda node=node, name=name: builder.input(selection.ref(node), name))
    names = _name_outputs(program, method)
    if not (refusals or selection.refused):
        for rewrite in rewrites_of_all(options.without_fusion):
            rewrite(selection, [*(node for node, _ in chosen.outputs), *(node for _, node in chosen.updates)])
        fused: dict[Node, list[Node]] = {}
        for inner, node in selection.fused_by.items():
            fused.setdefault(node, []).append(inner)
        for node in program.graph.nodes:
            for emitted in selection.blocks.get(node, ()):
                builder.call(emitted, str(of_layers(source(node, origins), fused.get(node, ()))))
        for (node, _), name in zip(chosen.outputs, names, strict=True):
            _try(refusals, node, name, lambda node=node, name=name: builder.output(selection.ref(node), name))
        for state, node in chosen.updates:
            _try(refusals, node, state.name, lambda node=node, state=state: builder.update(state, selection.ref(node)))
    builder.program.required_features = _features(method)
    builder.program.precision = ir.Precision[options.precision]
    rows = [report_row(node, selection, removed) for node in program.graph.nodes if node.op == "call_function"]
    return Lowered(builder.program, Report([*refusals, *rows], selection.notes), builder.names)


def _features(method: ir.Method) -> list[str]:
    """What an older reader of the file has to know: a symbol that no input has as a size by itself, and updates of
    inputs."""
    sizes = [dim for index in method.inputs for dim in method.values[index].dims if isinstance(dim, ir.SizeExpr)]
    nodes = [method.exprs[size.index] for size in sizes]
    alone = {node.a for node in nodes if node.op is ir.ExprOp.symbol}
    updated = {method.values[target].kind for target, _ in method.updates}
    return [
        *(["affine_inputs"] if len(alone) < len(method.symbols) else []),
        *(["input_updates"] if ir.ValueKind.input in updated else []),
    ]


def choose(
    program: ExportedProgram | Subgraph, options: ExportOptions, origins: dict[str, str], dims: list[dict[int, str]]
) -> Chosen:
    """Decides for every node that the outputs and mutations need."""
    method = ir.Method()
    tensors = _user_tensors(program)
    of_sizes = Sizes(method, sizes.ranges(program.range_constraints), *_symbols(tensors, dims))
    selection = Selection(Context(program, options, of_sizes, origins))
    refusals: list[Row] = []
    outputs, updates = _results(program, selection, refusals)
    for node in [*(n for n, _ in outputs), *(n for _, n in updates)]:
        selection.demand(node)
    selection.select()
    return Chosen(method, selection, tensors, outputs, updates, refusals)


def _try(refusals: list[Row], node: Node, name: str, step: Any) -> None:
    try:
        step()
    except Refused as refusal:
        refusals.append(Row(node.name, name, "refused", str(refusal), source=source(node)))


def _user_tensors(program: ExportedProgram | Subgraph) -> list[Node]:
    """Placeholders of the tensors that a caller passes, in order."""
    nodes = {node.name: node for node in program.graph.nodes if node.op == "placeholder"}
    specs = [spec for spec in program.graph_signature.input_specs if spec.kind is InputKind.USER_INPUT]
    return [nodes[spec.arg.name] for spec in specs if isinstance(spec.arg, TensorArgument)]


def _symbols(
    tensors: list[Node], dims: list[dict[int, str]]
) -> tuple[dict[sympy.Symbol, int], dict[sympy.Symbol, str]]:
    """Hints of the symbols that an input dimension is (factor * symbol + offset), and the names the user gave them."""
    hints: dict[sympy.Symbol, int] = {}
    names: dict[sympy.Symbol, str] = {}
    for index, node in enumerate(tensors):
        for axis, size in enumerate(node.meta["val"].shape):
            form = sizes.affine(size.node.expr) if isinstance(size, torch.SymInt) else None
            if form:
                symbol, factor, offset = form
                hints[symbol] = 1 if size.node.hint is None else (int(size.node.hint) - offset) // factor
                name = dims[index].get(axis) if index < len(dims) else None
                if name and name not in names.values():
                    names.setdefault(symbol, name)
    return hints, names


def _results(
    program: ExportedProgram | Subgraph, selection: Selection, refusals: list[Row]
) -> tuple[list[Any], list[tuple[Node, Node]]]:
    """The nodes of the user's outputs (with their specs) and (placeholder, node) of the mutations."""
    states = {name: node for node, (name, _) in selection.constants.states.items()}
    inputs = {node.name: node for node in _user_tensors(program)}
    results = next(node for node in program.graph.nodes if node.op == "output").args[0]
    outputs, updates = [], []
    for spec, node in zip(program.graph_signature.output_specs, results, strict=True):
        if spec.kind in _MUTATIONS:
            updates.append((states[spec.target], node))
        elif spec.kind is OutputKind.USER_INPUT_MUTATION and selection.options.input_updates:
            updates.append((inputs[spec.target], node))
            selection.notes[f"what is written into the input '{spec.target}' is for the next step of a call"] = None
        elif spec.kind is OutputKind.USER_OUTPUT and isinstance(spec.arg, TensorArgument):
            outputs.append((node, spec))
        elif spec.kind is OutputKind.USER_OUTPUT and isinstance(spec.arg, ConstantArgument):
            continue
        elif spec.kind is OutputKind.TOKEN:  # of an operator with an effect, which is refused with its line
            selection.demand(node)
        else:
            what = spec.target or str(getattr(spec.arg, "name", ""))
            refusals.append(Row(what, "output", "refused", _result_reason(spec.kind, what), source=_source(node)))
    return outputs, updates


def _result_reason(kind: OutputKind, what: str) -> str:
    if kind is OutputKind.USER_INPUT_MUTATION:
        return (
            f"the model writes into its input '{what}'; return the new value instead, or register a buffer; the "
            "export option input_updates keeps it for the next step of a call"
        )
    if kind is OutputKind.USER_OUTPUT:
        return f"the result '{what}' is a size, not a tensor; read it from the shape of an input or a result"
    return f"'{what}' is a result of training ({kind.name.lower()}): export the model without its loss and gradients"


def _source(node: Any) -> Source:
    return source(node) if isinstance(node, Node) else Source()


def _name_inputs(program: ExportedProgram | Subgraph, method: ir.Method) -> list[str]:
    """Writes Method.in_spec; returns the names of the tensor inputs ("cache.0" is item 0 of the argument `cache`).

    A Subgraph has no nesting: its tensors are named after their nodes.
    """
    if isinstance(program, Subgraph):
        return [node.name for node in _user_tensors(program)]
    args, kwargs = program.call_spec.in_spec.children()
    specs = [spec for spec in program.graph_signature.input_specs if spec.kind is InputKind.USER_INPUT]
    leaves = iter(_leaves(specs))
    signature = program.module_call_graph[0].signature
    names = list(getattr(signature, "forward_arg_names", None) or ())[: args.num_children]
    names += [f"arg{i}" for i in range(len(names), args.num_children)]
    arguments = nesting_of(args, leaves, "an argument")
    keywords = nesting_of(kwargs, leaves, "an argument")
    method.in_spec = nesting.dump({"t": [arguments, keywords], "names": names})
    parameters = [*zip(names, arguments["t"], strict=True), *keywords["d"]]
    return _unique([leaf for name, item in parameters for leaf in nesting.leaf_names(item, name)])


def _name_outputs(program: ExportedProgram | Subgraph, method: ir.Method) -> list[str]:
    """Writes Method.out_spec; returns the results' names: keys of a dict, "output.0" in a tuple, "output" if alone."""
    specs = [spec for spec in program.graph_signature.output_specs if spec.kind is OutputKind.USER_OUTPUT]
    if isinstance(program, Subgraph):
        return _unique([spec.arg.name for spec in specs])
    spec = nesting_of(program.call_spec.out_spec, iter(_leaves(specs)), "a result")
    method.out_spec = nesting.dump(spec)
    names = nesting.leaf_names(spec, "")
    return _unique([f"output.{name}" if name[:1].isdigit() else name or "output" for name in names])


def _unique(names: list[str]) -> list[str]:
    """No name twice, as the reader demands: {"a.b": x, "a": {"b": y}} has "a.b" and "a.b_2"."""
    taken, used, unique_names = set(names), set[str](), list[str]()
    for name in names:
        unique, number = name, 2
        while unique in used or (unique != name and unique in taken):
            unique, number = f"{name}_{number}", number + 1
        used.add(unique)
        unique_names.append(unique)
    return unique_names


def _leaves(specs: Iterable[Any]) -> list[Any]:
    """The leaves of a nesting: a tensor is None, the rest is fixed."""
    return [
        None if isinstance(spec.arg, TensorArgument) else constant(getattr(spec.arg, "value", None)) for spec in specs
    ]


def report_row(node: Node, selection: Selection, removed: dict[Node, str]) -> Row:
    """What became of a node. `removed`: those that passes took out, with what they were."""
    value = node.meta.get("val")
    tensor = value if isinstance(value, torch.Tensor) else None
    row = Row(node.name, str(node.target), "unused", source=source(node, selection.origins))
    if tensor is not None:
        row.dtype, row.shape = (
            str(tensor.dtype).removeprefix("torch."),
            str([str(size) for size in tensor.shape]).replace("'", ""),
        )
    if node in selection.refused:
        row.status, row.detail = "refused", selection.refused[node]
    elif node in selection.blocks:
        row.status, row.operators = "runs", [emitted.op for emitted in selection.blocks[node]]
        row.detail = " + ".join(row.operators)
    elif removed.get(node):
        row.status, row.detail = "removed", removed[node]
    elif isinstance(value, torch.SymInt | torch.SymFloat | torch.SymBool):
        row.status = "size"
    elif node in selection.fused_by:
        row.status, row.detail = "fused", selection.fused_by[node].name
    elif node in selection.constants:
        row.status = "folded"
    elif node.target.__name__ == "getitem" and node.args and node.args[0] in selection.blocks:
        row.status, row.detail = "runs", f"a result of {node.args[0].name}"
    return row
