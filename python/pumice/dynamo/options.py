# SPDX-License-Identifier: Apache-2.0
"""What a caller of pumice.compile may choose."""

from __future__ import annotations

from dataclasses import dataclass

from pumice.errors import require
from pumice.partition.options import PlacementOptions


@dataclass(frozen=True, kw_only=True)
class CompileOptions(PlacementOptions):
    """Options of pumice.compile and of backend="pumice"; an unknown one is refused with the nearest name.

    device, features, cache_dir: as for pumice.load; "" is its default.
    min_operators: a partition with fewer operators stays in eager.
    weights: how a change of a weight is noticed, after which the graph is built again. "hashed": all their bytes, at
        every call, so that no change is missed. "versions": by PyTorch's counters and addresses, which cost nothing and
        do not see what is written by way of `.data` or NumPy.
    strict: raise UnsupportedError, with the reasons, where a node of a graph would stay in eager.
    """

    KIND = "pumice.compile option"

    weights: str = "hashed"

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.weights, ("hashed", "versions"), "value of the option weights:")
