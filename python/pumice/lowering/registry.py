# SPDX-License-Identifier: Apache-2.0
"""What an operator record is, and the `Call` it is written against.

A record is a function that takes one node of the exported graph and says which Pumice operators compute it:

    @lowers(aten.softmax.int, aten._softmax.default)
    def softmax(call):
        call.emit("softmax", call.tensor("self"), call["dim"])

Nodes are visited from the outputs to the inputs, and only those that somebody asked for: a record that looks *through*
its inputs (``call.producer``) and asks for what stands behind them has fused the nodes between, which are then never
lowered. A record refuses by ``call.refuse(reason)``. It must not read the values of weights while it decides (inside
ExecuTorch's partitioner they are not there): hand `call.constant` a function instead.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pumice.lowering.call import Call

Record = Callable[["Call"], None]

_records: dict[Any, Record] = {}


class Refused(Exception):
    """Raised by a record; `str()` is the reason shown in the report."""


def lowers(*targets: Any) -> Callable[[Record], Record]:
    """Registers a record for overloads, e.g. ``aten.gelu.default``; those of libraries that may not be imported yet are
    given by name: ``"torchao.quantize_affine.default"``."""

    def register(record: Record) -> Record:
        for target in targets:
            if target in _records:
                raise AssertionError(f"two records for {target}: {_records[target].__module__} and {record.__module__}")
            _records[target] = record
        return record

    return register


def record_for(target: Any) -> Record | None:
    """The record of an overload, or None. Importing `pumice.ops` fills the table."""
    return _records.get(target) or _records.get(str(target))


def targets() -> list[Any]:
    """Every overload that has a record; some by name."""
    return list(_records)
