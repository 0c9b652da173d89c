# SPDX-License-Identifier: Apache-2.0
"""The operators of this build, as the shader library states them: what is accepted here is what can run."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Parameter:
    """One parameter of an operator: its kind (ir.Arg), name, and whether it may be left out."""

    type: str
    name: str
    optional: bool


@dataclass(frozen=True)
class Signature:
    """One operator. `accepts`: dtypes and storages, as ops/shared/accepted.h lists them; what has no list is free."""

    name: str
    version: int
    parameters: tuple[Parameter, ...]
    outputs: tuple[str, ...]
    accepts: Mapping[str, tuple[str, ...]]

    @staticmethod
    def parse(name: str, version: int, text: str, accepts: Mapping[str, Iterable[str]]) -> Signature:
        """`text` as serialization/program.h describes it: "Tensor x, Tensor? bias, int dim -> Tensor"."""
        left, _, right = text.partition("->")
        parameters = []
        for item in filter(None, (part.strip() for part in left.split(","))):
            kind, _, label = item.partition(" ")
            parameters.append(Parameter(kind.rstrip("?"), label.strip(), kind.endswith("?")))
        outputs = tuple(part.split()[0] for part in right.split(",") if part.strip())
        accepted = {what: tuple(values) for what, values in accepts.items()}
        return Signature(name, version, tuple(parameters), outputs, accepted)


@functools.cache
def op_table() -> Mapping[tuple[str, int], Signature]:
    """Every operator of the native module by name and version."""
    from pumice._pumice import op_table as native

    return {(row[0], row[1]): Signature.parse(*row) for row in native()}
