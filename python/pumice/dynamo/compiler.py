# SPDX-License-Identifier: Apache-2.0
"""pumice.compile, and the function behind backend="pumice"."""

from __future__ import annotations

import itertools
import threading
import types
import warnings
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.fx import GraphModule

from pumice.dynamo.capture import arguments, sizes_of_inputs
from pumice.dynamo.effects import Effects, effects
from pumice.dynamo.options import CompileOptions
from pumice.dynamo.program import BuiltGraph, NotBuilt
from pumice.dynamo.report_of_graphs import CompileReport, GraphReport
from pumice.dynamo.weights import fingerprint, plain_tensors
from pumice.errors import InvalidInputError
from pumice.lowering.source import source

_MOST_BUILT = 64  # forms of one graph that are kept, of other sizes and of other weights
_numbers, _codes = itertools.count(), itertools.count()
# An export changes what is global in torch, such as the kernels of composite operators.
_one_at_a_time = getattr(torch._dynamo.convert_frame, "compile_lock", None) or threading.RLock()
_graphs: weakref.WeakSet[CompiledGraph] = weakref.WeakSet()

GRADIENTS = "its results would have gradients, which the device does not compute: call it under torch.no_grad()"


class CompiledGraph:
    """A graph of TorchDynamo, built when it is first called, and again for what a form of it does not cover."""

    def __init__(self, graph: GraphModule, given: Sequence[Any], options: CompileOptions) -> None:
        self._graph, self._options = graph, options
        self._known = arguments(graph, given)
        self._lock = threading.Lock()
        self._built: dict[Any, _Forms] = {}
        self._effects: Effects | None = None
        self._never = _why_never(graph)
        nodes = [node for node in graph.graph.nodes if node.op not in ("placeholder", "output")]
        places = [str(place) for place in map(source, nodes)]
        where = next((place for place in places if place), nodes[0].name if nodes else "")
        self.report = GraphReport(next(_numbers), where)
        _graphs.add(self)

    def __call__(self, *given: Any) -> Any:
        """The results of the graph, as a tuple."""
        self.report.calls += 1
        why = self._never or self._why_not_now(given)
        if not why:
            try:
                built, inputs = self._for(given)
                return built([given[position] for position in inputs], given)
            except NotBuilt as reason:
                why = self._never = str(reason)
            except InvalidInputError as error:  # by its values: eager says what it thinks of them
                why = str(error)
        if why == GRADIENTS and not self.report.in_eager[why]:
            warnings.warn(f"Pumice leaves a graph ({self.report.where}) to eager: {why}", stacklevel=2)
        self.report.in_eager[why] += 1
        return self._graph(*given)

    def _why_not_now(self, given: Sequence[Any]) -> str:
        """A reason that holds for this call only."""
        tensors = [value for value in given if isinstance(value, torch.Tensor)]
        if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors):
            return GRADIENTS
        if others := {str(tensor.device) for tensor in tensors} - {"cpu"}:
            return f"tensors are on {', '.join(sorted(others))}: Pumice takes those on the CPU to its device by itself"
        if torch.is_autocast_enabled("cpu"):
            return "torch.autocast is on: give the model the dtype that it is to have"
        for position, value in enumerate(given):
            weight = self._known[position].is_weight
            if isinstance(value, torch.Tensor) and not weight and hasattr(value, "__tensor_flatten__"):
                return f"an input is a {type(value).__name__}, not a plain tensor"
        return ""

    def _for(self, given: Sequence[Any]) -> tuple[BuiltGraph, list[int]]:
        """What is built for these arguments, and the positions of its inputs."""
        with self._lock:
            if self._effects is None:
                self._effects = _effects(self._graph, given)
            known, written = self._known, self._effects.written
            tensors = [n for n, value in enumerate(given) if isinstance(value, torch.Tensor)]
            weights = [n for n in tensors if known[n].is_weight and n not in written]
            inputs = [n for n in tensors if n not in weights]
            _must_not_overlap(given, tensors, written)
            sized = sizes_of_inputs(known, inputs)
            values = [given[n] for n in inputs]
            constants = [*(given[n] for n in weights), *self._graph.parameters(), *self._graph.buffers()]
            key = (
                tuple(map(id, constants)),
                tuple((type(v), v) for n, v in enumerate(given) if n not in tensors and n not in sized),
                tuple(map(_layout, values)),
            )
            forms = self._forms(key, constants)
            built = next((form for form in forms.built if form.sizes.hold(values)), None)
            if built is None:
                dynamic = any(symbol for n in inputs for symbol in known[n].dims) and not forms.built
                built = self._build(given, inputs, weights, dynamic)
                forms.built.append(built)
            return built, inputs

    def _forms(self, key: Any, constants: list[torch.Tensor]) -> _Forms:
        """What is built for a key, less what was built for other values of the constants."""
        now = fingerprint(constants, self._options.weights)
        forms = self._built.pop(key, None)
        if forms is not None and forms.fingerprint != now:
            self._drop(forms)
            forms = None
        self._built[key] = forms or _Forms(constants, now)  # the last one is that which was used last
        while len(self._built) > 1 and sum(len(each.built) for each in self._built.values()) >= _MOST_BUILT:
            self._drop(self._built.pop(next(iter(self._built))))
        return self._built[key]

    def _drop(self, forms: _Forms) -> None:
        for form in forms.built:
            self.report.programs.remove(form.report)

    def _build(self, given: Sequence[Any], inputs: list[int], weights: list[int], dynamic: bool) -> BuiltGraph:
        try:
            with _one_at_a_time:
                found = _effects(self._graph, given)
                built = BuiltGraph(self._graph, self._known, given, inputs, weights, found, self._options, dynamic)
        except NotBuilt:
            if not dynamic:
                raise
            return self._build(given, inputs, weights, False)
        self.report.builds += 1
        self.report.programs.append(built.report)
        return built


@dataclass
class _Forms:
    """What is built for some constants, which it keeps, so that no other has their identity; for one layout."""

    constants: list[torch.Tensor]
    fingerprint: Any
    built: list[BuiltGraph] = field(default_factory=list)


def _why_never(graph: GraphModule) -> str:
    """A reason by what the graph calls."""
    for node in graph.graph.nodes:
        if node.target is torch._C._set_grad_enabled and node.args == (True,):
            return "it switches gradients on, which the device does not compute"
        if "autocast" in getattr(node.target, "__name__", ""):
            return "it uses torch.autocast: give the model the dtype that it is to have"
    return ""


def _effects(graph: GraphModule, given: Sequence[Any]) -> Effects:
    try:
        found = effects(graph, given)
    except Exception as error:  # of an operator that has no rule for fake tensors
        first = str(error).strip().split("\n")[0]
        raise NotBuilt(f"it cannot be run with fake tensors: {type(error).__name__}: {first}") from error
    if found.reshaped:
        raise NotBuilt("it changes the shape or the memory of an input")
    if found.shares_written:
        raise NotBuilt("a result shares the memory of an input that it writes")
    return found


def _must_not_overlap(given: Sequence[Any], tensors: Sequence[int], written: frozenset[int]) -> None:
    if not written:
        return
    memory = {n: {part.untyped_storage().data_ptr() for part in plain_tensors(given[n])} for n in tensors}
    if any(memory[n] & memory[m] for n in written for m in tensors if n != m):
        text = "an input that it writes shares its memory with another one"
        raise InvalidInputError(text, code="InvalidArgument", path="args")


def _layout(tensor: torch.Tensor) -> Any:
    """The order of dimensions in memory, and the dtype: programs are captured for these."""
    strides = tensor.stride()
    order = tuple(sorted(range(len(strides)), key=lambda dim: -strides[dim]))
    return order, tensor.dtype, tensor.permute(order).is_contiguous(), tuple(stride == 0 for stride in strides)


def backend(graph: GraphModule, given: list[Any], options: Any = None, **others: Any) -> Callable[..., Any]:
    """As torch.compile calls it. Raises InvalidInputError for an option that does not fit."""
    if others:
        text = f'backend="pumice" takes options={{...}}, not {", ".join(sorted(others))}'
        raise InvalidInputError(text, code="InvalidArgument", path="options")
    return _function(CompiledGraph(graph, given, CompileOptions.of(options)))


def _function(compiled: CompiledGraph) -> Callable[..., Any]:
    """What TorchDynamo calls. By its name torch leaves it alone while another thread exports; else it would write into
    what that one is tracing (`_torchdynamo_disable` in torch/_dynamo/eval_frame.py), and fail."""

    def call(*args: Any) -> Any:
        return compiled(*args)

    call.__name__ = "__torch_dispatch__"
    return call


def report() -> CompileReport:
    """Of all graphs that this process has compiled with backend="pumice" or pumice.compile and still has."""
    return CompileReport(tuple(sorted((graph.report for graph in _graphs), key=lambda r: r.number)))


class CompiledModel:
    """What pumice.compile returns: call it as the model. `model`: the one that it was made of."""

    def __init__(self, model: Any, options: CompileOptions, dynamic: bool | None, fullgraph: bool) -> None:
        self.model = model
        self._options = options
        self._graphs: list[CompiledGraph] = []
        self._without = 0
        self._call = torch.compile(_own_code(model), backend=self._compile, dynamic=dynamic, fullgraph=fullgraph)

    def _compile(self, graph: GraphModule, given: list[Any]) -> Callable[..., Any]:
        compiled = CompiledGraph(graph, given, self._options)
        self._graphs.append(compiled)
        return _function(compiled)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the model without gradients.

        Raises InvalidInputError for an argument that asks for gradients, and what the model raises.
        """
        for leaf in torch.utils._pytree.tree_leaves((args, kwargs)):
            if isinstance(leaf, torch.Tensor) and leaf.requires_grad:
                text = "an argument requires a gradient, which the device does not compute: give it x.detach()"
                raise InvalidInputError(text, code="InvalidArgument", stage="input", path="args")
        before = self._calls()
        with torch.no_grad():
            results = self._call(*args, **kwargs)
        self._without += self._calls() == before
        return results

    def _calls(self) -> int:
        return sum(graph.report.calls for graph in self._graphs)

    @property
    def report(self) -> CompileReport:
        """What ran where, and why not on the device, for each graph."""
        return CompileReport(tuple(graph.report for graph in self._graphs), self._without)

    def __repr__(self) -> str:
        return f"<pumice.CompiledModel of {type(self.model).__name__}: {len(self._graphs)} graphs>"


def _own_code(model: Callable[..., Any]) -> Callable[..., Any]:
    """A function that calls the model, with a code object of its own: TorchDynamo counts recompilations by those, and
    gives up after a few; it has one for all modules of torch.nn."""

    def call(*args: Any, **kwargs: Any) -> Any:
        return model(*args, **kwargs)

    code = call.__code__.replace(co_name=f"pumice_compiled_{next(_codes)}")
    return types.FunctionType(code, call.__globals__, code.co_name, None, call.__closure__)


def compile(
    model: torch.nn.Module | Callable[..., Any],
    *,
    dynamic: bool | None = None,
    fullgraph: bool = False,
    options: CompileOptions | Mapping[str, Any] | None = None,
    **named: Any,
) -> CompiledModel:
    """The model with what can run on the device there, and the rest in eager PyTorch: to try it before its export.

    dynamic, fullgraph: as of torch.compile. options, or the same by name: those of CompileOptions, such as device.
    Nothing is compiled before the first call. Weights may change: the next call sees it, and builds anew.
    Raises InvalidInputError for an option that does not fit, and for what is neither a module nor a function.
    """
    if not callable(model):
        text = f"expected a torch.nn.Module or a function, got {type(model).__name__}"
        raise InvalidInputError(text, code="InvalidArgument", path="model")
    if named and options is not None:
        raise InvalidInputError("give options as options={...} or by name, not both", code="InvalidArgument")
    return CompiledModel(model, CompileOptions.of(named or options), dynamic, fullgraph)
