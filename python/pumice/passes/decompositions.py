# SPDX-License-Identifier: Apache-2.0
"""The table of what is made of other operators before the lowerings."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.export import ExportedProgram

import pumice.decompositions
import pumice.ops  # noqa: F401 (fills the table of lowerings)
from pumice.decompositions.table import our_own, taken_apart
from pumice.lowering import registry


def decompositions(dropout: bool) -> Any:
    """torch's default table and ours, less what a lowering takes whole and less the quantized operators."""
    table = torch.export.default_decompositions()
    table.update(taken_apart(dropout))
    for target in registry.targets():
        if not isinstance(target, str):  # by name: the quantized ones, which go below
            table.pop(target, None)
    for target in [t for t in table if getattr(t, "namespace", "") in ("torchao", "quantized_decomposed")]:
        table.pop(target)
    return table


_one_at_a_time = threading.RLock()  # what is put away is of the whole process


def run_decompositions(program: ExportedProgram, table: Any) -> ExportedProgram:
    """The program with the operators of `table` taken apart."""
    with _one_at_a_time, _ours_first():
        return program.run_decompositions(table)


@contextmanager
def _ours_first() -> Iterator[None]:
    """torch takes some operators apart before it looks into a table; in here not those that we take apart."""
    early = torch._C.DispatchKey.Autograd
    kernels = {target: target.py_kernels.pop(early) for target in our_own() if early in target.py_kernels}
    for target in kernels:
        target._dispatch_cache.clear()
    try:
        yield
    finally:
        for target, kernel in kernels.items():
            target.py_kernels[early] = kernel
            target._dispatch_cache.clear()
