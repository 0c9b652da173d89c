# SPDX-License-Identifier: Apache-2.0
"""Pumice as a backend of torch.compile, for trying a model before its export.

    torch.compile(model, backend="pumice", options={"device": "llvmpipe"})
    pumice.compile(model, device="llvmpipe")          # the same, without gradients, and with `.report`

What can run runs on the device, the rest in eager PyTorch. An installed Pumice is found by its name; in a checkout
importing this module registers it.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any

import torch

__all__ = ["CompileOptions", "CompileReport", "CompiledModel", "compile", "pumice_backend", "report"]
_LAZY = {
    "CompileOptions": "options",
    "CompileReport": "report_of_graphs",
    "CompiledModel": "compiler",
    "compile": "compiler",
    "report": "compiler",
}


def pumice_backend(
    module: torch.fx.GraphModule, inputs: list[Any], *, options: Mapping[str, Any] | None = None, **others: Any
) -> Callable[..., Any]:
    """The function behind backend="pumice". `options`: those of CompileOptions, by name."""
    return importlib.import_module("pumice.dynamo.compiler").backend(module, inputs, options, **others)


def _register() -> None:
    """Unless an entry point of the installed package has the name: torch then registers what it finds there."""
    if "pumice" not in torch._dynamo.list_backends(exclude_tags=()):
        torch._dynamo.register_backend(compiler_fn=pumice_backend, name="pumice")


def __dir__() -> list[str]:
    """The public names, those included that are loaded when they are first used."""
    return sorted([*__all__, *(name for name in globals() if name.startswith("__"))])


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'pumice.dynamo' has no attribute '{name}'")
    value = getattr(importlib.import_module(f"pumice.dynamo.{_LAZY[name]}"), name)
    globals()[name] = value
    return value


_register()
