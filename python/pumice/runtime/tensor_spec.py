# SPDX-License-Identifier: Apache-2.0
"""What an input or output of a model is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

NUMPY_NAME = {
    "f32": "float32",
    "f16": "float16",
    "i32": "int32",
    "i64": "int64",
    "bool": "bool",
    "u8": "uint8",
    "i8": "int8",
}


@dataclass(frozen=True)
class TensorSpec:
    """An input or output. A dynamic dimension has a name in `dims` and min < max in `bounds`."""

    name: str
    dtype: str  # as numpy and torch call it: "float32", "int64", "bool", ...
    dims: tuple[int | str, ...]
    bounds: tuple[tuple[int, int], ...]  # smallest and largest size of each dimension, both included
    example: tuple[int, ...]  # the shape at export
    storage: str = "buffer"  # on the device: "texture3d" where the file says so; callers see no difference

    def __str__(self) -> str:
        dims = (
            f"{d} in {lo}..{hi}" if isinstance(d, str) else str(d)
            for d, (lo, hi) in zip(self.dims, self.bounds, strict=True)
        )
        storage = "" if self.storage == "buffer" else f" {self.storage}"
        return f"{self.name}: {self.dtype}[{', '.join(dims)}]{storage}"


def tensor_spec(facts: Mapping[str, Any]) -> TensorSpec:
    """Of what the runtime says of an input or output."""
    dims = tuple(facts["dims"])
    bounds = tuple((lo, hi) for lo, hi in zip(facts["min"], facts["max"], strict=True))
    return TensorSpec(
        facts["name"], NUMPY_NAME[facts["dtype"]], dims, bounds, tuple(facts["example"]), facts["storage"]
    )
