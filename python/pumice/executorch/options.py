# SPDX-License-Identifier: Apache-2.0
"""What a caller of PumicePartitioner may choose, and its form in a .pte file: compile specs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from executorch.exir.backend.compile_spec_schema import CompileSpec

from pumice.errors import require
from pumice.partition.options import PlacementOptions

_WRITTEN = ("device", "features", "cache_dir", "external_data")  # the delegate skips the last one
# Least sizes of dynamic dimensions, {symbol: 0 or 1} as JSON: the edge dialect has forgotten them and says 2.
_LEAST = "least_sizes"


@dataclass(frozen=True, kw_only=True)
class PartitionOptions(PlacementOptions):
    """Options of PumicePartitioner; an unknown one is refused with the nearest name.

    device, features, cache_dir: written into the program, as for pumice.load; options given at load time win.
    min_operators: a partition with fewer operators stays on the CPU.
    external_data: weights go to a .ptd file of this name (`program.write_tensor_data_to_file`), not into the .pte.
    strict: every node must be delegated; otherwise partition() raises UnsupportedError with the reasons.
    """

    KIND, STAGE = "partitioner option", "export"

    external_data: str = ""

    def compile_specs(self, least: Mapping[str, int]) -> list[CompileSpec]:
        """The options as the .pte file holds them. `least`: lower bounds of dynamic sizes by symbol."""
        specs = [CompileSpec(name, getattr(self, name).encode()) for name in _WRITTEN if getattr(self, name)]
        forgotten = {symbol: size for symbol, size in least.items() if size < 2}
        return specs + ([CompileSpec(_LEAST, json.dumps(forgotten, sort_keys=True).encode())] if forgotten else [])


def external_data(specs: Sequence[CompileSpec]) -> str:
    """The name of the .ptd file for the weights, or empty."""
    return next((bytes(spec.value).decode() for spec in specs if spec.key == "external_data"), "")


def least_sizes(specs: Sequence[CompileSpec]) -> dict[str, int]:
    """What preprocess needs of the compile specs; refuses those that the delegate would refuse later."""
    for spec in specs:
        require(spec.key, (*_WRITTEN, _LEAST), "compile spec")
    return next((json.loads(bytes(spec.value)) for spec in specs if spec.key == _LEAST), {})
