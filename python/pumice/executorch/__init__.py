# SPDX-License-Identifier: Apache-2.0
"""Pumice as a backend of ExecuTorch.

    import pumice.executorch                                  # registers PumiceBackend in this process
    from pumice.executorch import PumicePartitioner
    lowered = to_edge_transform_and_lower(exported, partitioner=[PumicePartitioner()])
    lowered.to_executorch().save("m.pte")
    Runtime.get().load_program("m.pte").load_method("forward").execute([x])

Importing this twice is fine. Running a .pte needs the import only; the partitioner is loaded when it is asked for.
"""

from __future__ import annotations

from typing import Any

from pumice.executorch.plugin import register

# Loaded when they are first used; __init__.pyi has their types.
_LAZY = {
    "PumiceBackend": "backend",
    "PartitionOptions": "options",
    "PumicePartitioner": "partitioner",
    "PumiceRecipeType": "recipes",
    "not_in_core_aten": "taken_apart",
}
__all__ = ["PartitionOptions", "PumiceBackend", "PumicePartitioner", "PumiceRecipeType", "not_in_core_aten"]

register()


def __dir__() -> list[str]:
    """The public names, those included that are loaded when they are first used: for dir() and completion."""
    return sorted([*__all__, *(name for name in globals() if name.startswith("__"))])


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'pumice.executorch' has no attribute '{name}'")
    import importlib

    value = getattr(importlib.import_module(f"pumice.executorch.{_LAZY[name]}"), name)
    globals()[name] = value
    return value
