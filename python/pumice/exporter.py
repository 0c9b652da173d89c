# SPDX-License-Identifier: Apache-2.0
"""pumice.export: a PyTorch module -> a program that runs on any Vulkan device.

torch.export -> decompositions, without those of what we keep whole -> normalize -> fold -> selection -> ir -> bytes.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch.export import ExportedProgram

import pumice.ops  # noqa: F401 (fills the table of records)
from pumice.errors import Error, InvalidInputError, UnsupportedError
from pumice.format import ir, writer
from pumice.format.dtypes import device_dtype
from pumice.lowering import registry
from pumice.lowering.lower import lower
from pumice.lowering.options import ExportOptions
from pumice.lowering.report import Report
from pumice.lowering.treespec import dim_names
from pumice.passes.normalize import normalize

_MAX_SHOWN = 8  # refusals in the text of an UnsupportedError; all are in .reasons


class Program:
    """An exported program: `report` says what became of every node; bytes(program) and save() give the file."""

    def __init__(self, program: ir.Program, report: Report) -> None:
        self.ir = program
        self.report = report

    def __bytes__(self) -> bytes:
        with _constants_checked():
            return writer.to_bytes(self.ir)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the file under a temporary name and renames it: a reader sees all of it or nothing."""
        try:
            with _constants_checked():
                writer.save(self.ir, path)
        except OSError as error:
            text = f"cannot write {os.fspath(path)}: {error.strerror}"
            raise Error(text, code="IoError", stage="export", path=os.fspath(path)) from error

    def __repr__(self) -> str:
        calls = sum(self.report.operators.values())
        return f"<pumice.Program: {calls} operator calls, {len(self.ir.constants)} constants>"


def export(
    module: torch.nn.Module | ExportedProgram | str | os.PathLike[str],
    args: tuple[Any, ...] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    dynamic_shapes: Any = None,
    options: ExportOptions | Mapping[str, Any] | None = None,
) -> Program:
    """Lowers a module called as module(*args, **kwargs), an ExportedProgram, or a saved .pt2.

    Raises UnsupportedError, with every reason and the lines of the model they belong to, when anything cannot run.
    """
    options = ExportOptions.of(options)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*LeafSpec.*")  # torch's own use of what it has deprecated
        captured = _capture(module, args, dict(kwargs or {}), dynamic_shapes, options)
        origins = _stack_traces(captured)
        decomposed = captured.run_decompositions(_decompositions())
    removed = normalize(decomposed.graph, lambda dtype: device_dtype(dtype, options))
    dims = dim_names(module, args, dict(kwargs or {}), dynamic_shapes) if isinstance(module, torch.nn.Module) else []
    program, report = lower(decomposed, removed, options, origins, dims)
    if report.reasons:
        raise unsupported(report)
    return Program(program, report)


def _capture(
    module: Any, args: Any, kwargs: dict[str, Any], dynamic_shapes: Any, options: ExportOptions
) -> ExportedProgram:
    if isinstance(module, torch.nn.Module):
        if not isinstance(args, tuple | list):
            raise InvalidInputError(
                f"args must be a tuple of example inputs, got {type(args).__name__}",
                code="InvalidArgument",
                path="args",
            )
        try:
            return torch.export.export(
                module, tuple(args), kwargs, dynamic_shapes=dynamic_shapes, strict=options.strict
            )
        except Exception as error:
            text = f"torch.export could not capture {type(module).__name__}: {error}"
            raise UnsupportedError(text, [text], code="InvalidArgument", path="module") from error
    if args or kwargs or dynamic_shapes is not None:
        text = "args, kwargs and dynamic_shapes are part of an exported program already; give them with a module only"
        raise InvalidInputError(text, code="InvalidArgument", path="args")
    if isinstance(module, str | os.PathLike):
        try:
            return torch.export.load(os.fspath(module))
        except Exception as error:
            raise InvalidInputError(f"cannot load {module}: {error}", code="IoError", path=os.fspath(module)) from error
    if not isinstance(module, ExportedProgram):
        text = f"expected a torch.nn.Module, an ExportedProgram or the path of a .pt2, got {type(module).__name__}"
        raise InvalidInputError(text, code="InvalidArgument", path="module")
    return module


def _decompositions() -> Any:
    """torch's default table without what a record takes whole and without the quantized operators."""
    table = torch.export.default_decompositions()
    for target in registry.targets():
        if not isinstance(target, str):  # by name: the quantized ones, which go below
            table.pop(target, None)
    for target in [t for t in table if getattr(t, "namespace", "") in ("torchao", "quantized_decomposed")]:
        table.pop(target)
    return table


def _stack_traces(program: ExportedProgram) -> dict[str, str]:
    """Node names -> where they come from, those of wrapped regions (no_grad) included: decomposing loses some of it."""
    modules = [m for m in program.graph_module.modules() if isinstance(m, torch.fx.GraphModule)]
    return {
        node.name: node.meta["stack_trace"] for m in modules for node in m.graph.nodes if node.meta.get("stack_trace")
    }


def unsupported(report: Report) -> UnsupportedError:
    reasons = report.reasons
    shown = "\n".join(f"  {reason}" for reason in reasons[:_MAX_SHOWN])
    more = f"\n  and {len(reasons) - _MAX_SHOWN} more (.reasons has all)" if len(reasons) > _MAX_SHOWN else ""
    error = UnsupportedError(f"{len(reasons)} nodes of the model cannot run:\n{shown}{more}", reasons)
    error.report = report
    return error


@contextmanager
def _constants_checked() -> Iterator[None]:
    """Values are read when a file is written: what they may not be (a record's `data`) is told as a refusal."""
    try:
        yield
    except ValueError as error:
        raise UnsupportedError(str(error), [str(error)], code="BadQuantParams", path="constants") from error
