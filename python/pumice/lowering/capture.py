# SPDX-License-Identifier: Apache-2.0
"""torch.export of a module, with errors that its author can use."""

from __future__ import annotations

import contextlib
import io
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch._subclasses.fake_tensor import DataDependentOutputException
from torch.export import ExportedProgram
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode

from pumice.errors import UnsupportedError
from pumice.lowering.instead import VALUES
from pumice.lowering.source import raised_at

_READ = "trying to get value out of a tracing tensor"  # in what torch raises for it, a RuntimeError


def capture(
    module: torch.nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any], dynamic_shapes: Any, strict: bool
) -> ExportedProgram:
    """torch.export of module(*args, **kwargs). Raises UnsupportedError, with the line of the model, where it cannot."""
    try:
        with _without_graph():
            return torch.export.export(module, args, dict(kwargs), dynamic_shapes=dynamic_shapes, strict=strict)
    except Exception as error:
        text = f"torch.export could not capture {type(module).__name__}: {raised_at(error)}{_advice(error)}{error}"
        raise UnsupportedError(text, [text], code="InvalidArgument", path="module") from error


@contextlib.contextmanager
def _without_graph() -> Iterator[None]:
    """Leaves out of stderr the half-made graph that torch.export prints where it fails: the error names the line."""
    said, graph = io.StringIO(), None
    try:
        with contextlib.redirect_stderr(said):
            yield
    except Exception as error:
        graph = getattr(error, "partial_fx_graph", None)
        raise
    finally:
        text = said.getvalue()
        sys.stderr.write(text if graph is None else text.replace(f"{graph}\n", ""))


def _advice(error: Exception) -> str:
    """What to do about an error of torch.export, where its own text does not say it to the author of a model."""
    if isinstance(error, GuardOnDataDependentSymNode | DataDependentOutputException) or _READ in str(error):
        return f"the model decides by the value of a tensor; instead {VALUES}.\n"
    if "Constraints violated" in str(error):
        return (
            "torch cannot show that the model takes every size of a dynamic dimension: give it a smaller range, as a "
            'multiple (16 * torch.export.Dim("n")), or leave it fixed.\n'
        )
    return ""
