# SPDX-License-Identifier: Apache-2.0
"""Weights beside the blob, in ExecuTorch's named data: methods and partitions that have equal ones share them in the
.pte file, or in a .ptd file of its own."""

from __future__ import annotations

import functools
import hashlib

from executorch.exir._serialize._named_data_store import NamedDataStore, NamedDataStoreOutput

from pumice import ir

_SMALLEST = 1024  # bytes: what is smaller stays in the blob
_ALIGNMENT = 16


def put_outside(program: ir.Program, file: str) -> NamedDataStoreOutput:
    """Makes the larger constants external, each under a key made of its bytes; `file`: of a .ptd, or empty."""
    store = NamedDataStore()
    keys: dict[str, int] = {}
    for constant in program.constants:
        if constant.size < _SMALLEST:
            continue
        data = bytes(constant.data())
        key = f"pumice.{hashlib.sha256(data).hexdigest()}"
        keys[key] = keys.get(key, 0) + 1  # in one program keys differ; the store has equal bytes once
        constant.key = key if keys[key] == 1 else f"{key}.{keys[key]}"
        constant.external = True
        constant.data = functools.partial(bytes, data)
        store.add_named_data(constant.key, data, _ALIGNMENT, file or None)
    return store.get_named_data_store_output()
