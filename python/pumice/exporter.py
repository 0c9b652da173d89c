# SPDX-License-Identifier: Apache-2.0
"""pumice.export: a PyTorch module -> a program that runs on any Vulkan device.

torch.export -> decompositions, without those of what we keep whole -> normalize -> fold -> selection -> ir -> bytes.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from typing import Any

import torch
from torch.export import ExportedProgram

import pumice.fusion
import pumice.ops  # noqa: F401 (fills the table of lowerings)
from pumice.errors import InvalidInputError, UnsupportedError, require
from pumice.format.dtypes import device_dtype
from pumice.lowering import registry
from pumice.lowering.capture import capture
from pumice.lowering.half import capture_half, cast_ends, ends_of
from pumice.lowering.lower import lower
from pumice.lowering.options import ExportOptions
from pumice.lowering.program import Program
from pumice.lowering.report import unsupported
from pumice.lowering.source import stack_traces
from pumice.lowering.treespec import dim_names, with_signature
from pumice.passes.complex_pairs import complex_to_pairs
from pumice.passes.decompositions import decompositions, run_decompositions
from pumice.passes.normalize import normalize
from pumice.passes.random_numbers import draw_on_the_device
from pumice.passes.storage import place_storage
from pumice.passes.tied_constants import merge_tied_constants

_PRECISION_NOTES = {
    "fp32": ["precision fp32: products of fp32 are computed in fp32 alone, on every device"],
    "fp16": ["precision fp16: weights and what is between inputs and results became fp16, as module.half() has them"],
}


def export(
    module: torch.nn.Module | ExportedProgram | str | os.PathLike[str],
    args: tuple[Any, ...] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    dynamic_shapes: Any = None,
    options: ExportOptions | Mapping[str, Any] | None = None,
) -> Program:
    """Lowers a module called as module(*args, **kwargs), an ExportedProgram, or a saved .pt2.

    A .pt2 is opened by torch.export.load, which unpickles: it can run any code as you. Open only those that you trust.
    args, kwargs: example inputs, of a module only. Their dtypes are kept (but see bf16 and float64 of ExportOptions),
    and their shapes, except for the dimensions in `dynamic_shapes`, which are torch.export's.
    Raises InvalidInputError for an argument that does not fit.
    Raises UnsupportedError, with every reason and the lines of the model they belong to, when anything cannot run.
    """
    options = ExportOptions.of(options)
    for name in options.without_fusion:
        require(name, registry.pattern_names(), "fusion pattern")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*LeafSpec.*")  # torch's own use of what it has deprecated
        captured = _capture(module, args, dict(kwargs or {}), dynamic_shapes, options)
        ends = ends_of(captured) if options.precision == "fp16" else None
        if ends is not None:
            captured = capture_half(module, args, dict(kwargs or {}), dynamic_shapes, options.strict)
        _must_have_data(captured)
        origins = stack_traces(captured)
        decomposed = _decomposed(merge_tied_constants(captured), dropout=options.seed is not None)
    if ends is not None:
        cast_ends(decomposed, ends)
    complex_to_pairs(decomposed)
    draw_on_the_device(decomposed, options.seed or 0)
    removed = normalize(decomposed, lambda dtype: device_dtype(dtype, options.bf16, options.float64))
    dims = dim_names(module, args, dict(kwargs or {}), dynamic_shapes) if isinstance(module, torch.nn.Module) else []
    lowered = lower(decomposed, removed, options, origins, dims)
    if lowered.report.reasons:
        raise unsupported(lowered.report)
    if isinstance(module, torch.nn.Module):
        method = lowered.program.methods[0]
        method.in_spec = with_signature(method.in_spec, module)
        lowered.report.notes += _of_training(module)
    lowered.report.notes += _PRECISION_NOTES.get(options.precision, [])
    place_storage(lowered, options.storage)
    return Program(lowered.program, lowered.report)


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
        return capture(module, tuple(args), kwargs, dynamic_shapes, options.strict)
    if not isinstance(module, str | os.PathLike | ExportedProgram):
        raise InvalidInputError(_no_model(module), code="InvalidArgument", path="module")
    if args or kwargs or dynamic_shapes is not None:
        text = "args, kwargs and dynamic_shapes are part of an exported program already; give them with a module only"
        raise InvalidInputError(text, code="InvalidArgument", path="args")
    if isinstance(module, str | os.PathLike):
        try:
            return torch.export.load(os.fspath(module))
        except Exception as error:
            raise InvalidInputError(f"cannot load {module}: {error}", code="IoError", path=os.fspath(module)) from error
    return module


def _of_training(module: torch.nn.Module) -> list[str]:
    """A note where the model normalises by the statistics of each batch, which is mostly a forgotten eval()."""
    norms = torch.nn.modules.batchnorm._BatchNorm
    found = [name for name, layer in module.named_modules() if isinstance(layer, norms) and layer.training]
    if not found:
        return []
    return [
        f"{len(found)} batch norms, '{found[0]}' the first, are in training mode: they take the statistics of each "
        "batch and update their own; where that is not meant, call model.eval() before the export"
    ]


def _no_model(given: Any) -> str:
    """Why something is nothing to export."""
    if isinstance(given, type) and issubclass(given, torch.nn.Module):
        return f"{given.__name__} is a class: export an instance of it, {given.__name__}(...).eval()"
    if isinstance(given, torch.jit.ScriptFunction | torch.jit.ScriptModule):
        return "a TorchScript program cannot be exported: give the torch.nn.Module that it was made from"
    if callable(given):
        return (
            f"a function ({getattr(given, '__name__', type(given).__name__)}) cannot be exported: write a "
            "torch.nn.Module whose forward calls it"
        )
    return f"expected a torch.nn.Module, an ExportedProgram or the path of a .pt2, got {type(given).__name__}"


def _decomposed(captured: ExportedProgram, dropout: bool) -> ExportedProgram:
    """Raises UnsupportedError where torch cannot: it runs the model's Python code again, with other checks."""
    try:
        return run_decompositions(captured, decompositions(dropout))
    except Exception as error:
        text = f"torch could not take the exported program apart: {type(error).__name__}: {error}"
        raise UnsupportedError(text, [text], code="InvalidArgument", path="module") from error


def _must_have_data(captured: ExportedProgram) -> None:
    for name, value in [*captured.state_dict.items(), *captured.constants.items()]:
        if isinstance(value, torch.Tensor) and value.is_meta:
            text = (
                f"'{name}' is on the meta device, where tensors have a shape and no data; load the weights, then export"
            )
            raise UnsupportedError(text, [text], code="InvalidArgument", path=name)
