# SPDX-License-Identifier: Apache-2.0
"""A graph built for the arguments of one call: partitions on the device, and PyTorch for the rest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, OutputKind, TensorArgument
from torch.fx import GraphModule

from pumice.dynamo.assemble import assemble
from pumice.dynamo.capture import Argument, capture, left_to_eager
from pumice.dynamo.effects import Effects
from pumice.dynamo.options import CompileOptions
from pumice.dynamo.sizes import Sizes
from pumice.errors import UnsupportedError
from pumice.format.dtypes import device_dtype
from pumice.lowering.lower import lower
from pumice.lowering.program import Program
from pumice.lowering.report import unsupported
from pumice.partition.nodes import calls, subgraph_of
from pumice.partition.plan import OPTIONS, Plan
from pumice.partition.planner import plan
from pumice.partition.report import PartitionReport, report
from pumice.passes.normalize import normalize
from pumice.runtime.session import Session, load

aten = torch.ops.aten
_STORED = (InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR)


class NotBuilt(Exception):
    """The graph stays in eager; `str()` is the reason."""


class BuiltGraph:
    """Call it with the tensors that the graph takes as inputs; `sizes` says for which it is right."""

    def __init__(
        self,
        graph: GraphModule,
        known: Sequence[Argument],
        given: Sequence[Any],
        inputs: list[int],
        weights: list[int],
        effects: Effects,
        options: CompileOptions,
        dynamic: bool,
    ) -> None:
        """Raises NotBuilt, UnsupportedError where strict options want all of it on the device, and what load raises."""
        try:
            program, origins = capture(graph, known, given, inputs, weights, dynamic)
        except Exception as error:  # torch.export has many
            first = str(error).strip().split("\n")[0]
            raise NotBuilt(f"torch.export could not capture it: {type(error).__name__}: {first}") from error
        _must_be_plain(program)
        made = plan(program, options.min_operators, (), left_to_eager(program, effects.sharing))
        parts = _loaded(program, made, options)
        self.report: PartitionReport = report(program, made, origins)
        if options.strict and self.report.reasons:
            raise unsupported(self.report)
        self.sizes = Sizes(program)
        if dynamic and not self.sizes.hold([given[position] for position in inputs]):
            raise NotBuilt("what torch.export assumed of its dynamic sizes does not hold for the sizes of this call")
        self._module = assemble(program, parts)
        self._signature, self._effects = program.graph_signature, effects
        self._stored = {
            spec.arg.name: program.state_dict.get(spec.target, program.constants.get(spec.target))
            for spec in self._signature.input_specs
            if spec.kind in _STORED
        }
        # The numbers, among the inputs, of those that results are written into.
        names = [s.arg.name for s in self._signature.input_specs if s.kind is InputKind.USER_INPUT]
        self._writes = [
            names.index(spec.target)
            for spec in self._signature.output_specs
            if spec.kind is OutputKind.USER_INPUT_MUTATION
        ]

    def __call__(self, inputs: Sequence[torch.Tensor], arguments: Sequence[Any]) -> tuple[Any, ...]:
        """The results of the graph. Inputs that it writes have their new values after everything else has run.

        Raises NotBuilt, with nothing written, where results do not share memory as those of eager do."""
        given = iter(inputs)
        values = [
            self._stored[spec.arg.name] if spec.kind in _STORED else next(given) for spec in self._signature.input_specs
        ]
        with torch.no_grad():
            results = self._module(*values)
            specs = self._signature.output_specs[len(self._writes) :]  # mutations come first
            own = [
                getattr(spec.arg, "value", None) if value is None else value
                for spec, value in zip(specs, results[len(self._writes) :], strict=True)
            ]
            if not self._effects.are_kept(arguments, own):
                raise NotBuilt("its results share memory in a way that only eager has")
            for number, value in zip(self._writes, results, strict=False):
                inputs[number].copy_(value)
        for number, position in self._effects.arguments.items():
            own[number] = arguments[position]
        return tuple(own)


def _must_be_plain(program: ExportedProgram) -> None:
    signature = program.graph_signature
    kinds = {spec.kind for spec in signature.output_specs}
    if others := kinds - {OutputKind.USER_OUTPUT, OutputKind.USER_INPUT_MUTATION}:
        names = ", ".join(sorted(kind.name.lower().replace("_", " ") for kind in others))
        raise NotBuilt(f"it has results of a kind that only eager takes care of: {names}")
    inputs = [spec for spec in signature.input_specs if spec.kind is InputKind.USER_INPUT]
    if not all(isinstance(spec.arg, TensorArgument) for spec in inputs):
        raise NotBuilt("an input is no tensor")
    if any(node.target is aten.as_strided.default for node in calls(program)):
        raise NotBuilt("it reads a tensor by its strides in memory (as_strided)")


def _loaded(program: ExportedProgram, made: Plan, options: CompileOptions) -> list[tuple[Any, Any, Session]]:
    """The partitions of a plan with their sessions. One whose weights no operator takes goes out of the plan."""
    parts, kept = [], []
    for part in made.partitions:
        try:
            parts.append((part.subgraph, part.nodes, _load(program, part.nodes, options)))
            kept.append(part)
        except UnsupportedError as error:
            made.reasons.update(dict.fromkeys(part.nodes, str(error)))
    made.partitions = kept
    return parts


def _load(program: ExportedProgram, nodes: Any, options: CompileOptions) -> Session:
    subgraph = subgraph_of(program, nodes)
    removed = normalize(subgraph, lambda dtype: device_dtype(dtype, OPTIONS.bf16, OPTIONS.float64))
    lowered = lower(subgraph, removed, OPTIONS, {}, [])
    if lowered.report.reasons:
        raise unsupported(lowered.report)
    data = bytes(Program(lowered.program, lowered.report))
    return load(
        data,
        device=options.device or None,
        features=options.features or None,
        cache_dir=options.cache_dir or None,
    )
