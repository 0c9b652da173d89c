# SPDX-License-Identifier: Apache-2.0
"""The model that FILE.py:FUNCTION or FILE.pt2 names."""

from __future__ import annotations

import importlib.util
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click


def load_source(source: str) -> tuple[Any, tuple, dict, Any]:
    """(module or ExportedProgram, args, kwargs, dynamic_shapes) of FILE.py:FUNCTION or FILE.pt2."""
    import torch

    from pumice.quantizer import quiet_torchao

    if source.endswith(".pt2"):
        if not Path(source).is_file():
            raise click.UsageError(f"no file '{source}'")
        return torch.export.load(source), (), {}, None
    name, colon, function = source.rpartition(":")
    if not colon:
        raise click.UsageError(f"'{source}' is neither FILE.py:FUNCTION nor a saved .pt2 file")
    path = Path(name)
    if not path.is_file():
        raise click.UsageError(f"no file '{name}'")
    sys.path.insert(0, str(path.resolve().parent))  # so that the file's own imports work, as when it is run
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise click.UsageError(f"'{name}' is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    with quiet_torchao(), _errors_of(path, f"'{name}'"):
        spec.loader.exec_module(module)
    if not callable(getattr(module, function, None)):
        raise click.UsageError(f"'{name}' has no function '{function}'")
    with quiet_torchao(), _errors_of(path, f"{function}() of '{name}'"):
        returned = getattr(module, function)()
    if not isinstance(returned, tuple) or not 2 <= len(returned) <= 4:
        raise click.UsageError(
            f"{source} must return (module, args[, kwargs[, dynamic_shapes]]), not {type(returned).__name__}"
        )
    return (*returned, *((), {}, None)[len(returned) - 1 :])


@contextmanager
def _errors_of(path: Path, what: str) -> Iterator[None]:
    """An exception of the user's own file becomes a message with the frames from that file on, without ours."""
    try:
        yield
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        of_file = (i for i, frame in enumerate(frames) if Path(frame.filename).resolve() == path.resolve())
        first = next(of_file, len(frames))
        lines = [*traceback.format_list(frames[first:]), *traceback.format_exception_only(error)]
        raise click.ClickException(f"{what} raised {type(error).__name__}\n{''.join(lines).rstrip()}") from None
