# SPDX-License-Identifier: Apache-2.0
"""Weights outside of the blob, in ExecuTorch's named data: in the .pte file or in a .ptd file of their own. Methods and
partitions that have equal ones share them."""

from __future__ import annotations

import functools
import hashlib

from executorch.exir._serialize._named_data_store import NamedDataStore, NamedDataStoreOutput

from pumice.format import ir

_SMALLEST = 1024  # bytes: what is smaller stays in the blob
_ALIGNMENT = 16


def put_outside(program: ir.Program, file: str) -> NamedDataStoreOutput:
    """Makes the larger constants external, each under a key made of its bytes; `file`: of a .ptd, or empty.

    Equal ones become one constant: it is read and packed once, whatever number of layers has it.
    """
    store = NamedDataStore()
    kept: list[ir.Constant] = []
    places: list[int] = []  # of the program's constants, in `kept`
    known: dict[str, int] = {}
    for constant in program.constants:
        if constant.size >= _SMALLEST:
            data = bytes(constant.data())
            constant.key = f"pumice.{hashlib.sha256(data).hexdigest()}"
            constant.external = True
            constant.data = functools.partial(bytes, data)
            store.add_named_data(constant.key, data, _ALIGNMENT, file or None)
        places.append(known.setdefault(constant.key, len(kept)))
        if places[-1] == len(kept):
            kept.append(constant)
    program.constants = kept
    for value in (value for method in program.methods for value in method.values):
        if value.kind is ir.ValueKind.constant:
            value.ref = places[value.ref]
    for state in program.states:
        if state.constant >= 0:
            state.constant = places[state.constant]
    return store.get_named_data_store_output()
