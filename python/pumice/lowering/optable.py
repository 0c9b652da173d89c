# SPDX-License-Identifier: Apache-2.0
"""The operators of this build, as the shader library states them: what is accepted here is what can run."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pumice.format.ir import DType


@dataclass(frozen=True)
class Parameter:
    type: str
    name: str
    optional: bool


@dataclass(frozen=True)
class Signature:
    """One operator. `axes`: the dtypes (and other choices) its main shader was compiled for."""

    name: str
    version: int
    parameters: tuple[Parameter, ...]
    outputs: tuple[str, ...]
    axes: Mapping[str, tuple[str, ...]]

    @staticmethod
    def parse(name: str, version: int, text: str, axes: Mapping[str, Iterable[str]]) -> Signature:
        """`text` as serialization/program.h describes it: "Tensor x, Tensor? bias, int dim -> Tensor"."""
        left, _, right = text.partition("->")
        parameters = []
        for item in filter(None, (part.strip() for part in left.split(","))):
            kind, _, label = item.partition(" ")
            parameters.append(Parameter(kind.rstrip("?"), label.strip(), kind.endswith("?")))
        outputs = tuple(part.split()[0] for part in right.split(",") if part.strip())
        return Signature(
            name, version, tuple(parameters), outputs, {axis: tuple(values) for axis, values in axes.items()}
        )

    def accepts(self, axis: str, dtype: DType) -> bool:
        """Whether the shader has a variant for tensors of `dtype` on `axis`; an axis it does not have accepts all."""
        values = self.axes.get(axis)
        return values is None or axis_value(dtype, values) in values


def axis_value(dtype: DType, values: Iterable[str]) -> str:
    """How a dtype is spelt on an axis: i64 is i32 on the device, and bool u8, unless the axis lists them."""
    if dtype is DType.i64:
        return "i64" if "i64" in values else "i32"
    if dtype is DType.bool:
        return "boolean" if "boolean" in values else "u8"
    return dtype.name


@functools.cache
def op_table() -> Mapping[tuple[str, int], Signature]:
    """Every operator of the native module by name and version."""
    from pumice._pumice import op_table as native

    return {(name, version): Signature.parse(name, version, params, axes) for name, version, params, axes in native()}
