# SPDX-License-Identifier: Apache-2.0
"""Quantized PyTorch models on any Vulkan GPU.

    program = pumice.export(model, (x,)); program.save("m.pumice")     # needs torch
    session = pumice.load("m.pumice"); y = session(x)                  # does not

Importing this package touches no GPU and does not import torch.
"""

from __future__ import annotations

from typing import Any

from pumice._pumice import version as _version
from pumice.errors import CancelledError, DeviceError, Error, InvalidFileError, InvalidInputError, UnsupportedError
from pumice.runtime.devices import Device, devices, why_no_devices
from pumice.runtime.profile import ProfileRow
from pumice.runtime.session import Session, check, inspect, load
from pumice.runtime.tensor_spec import TensorSpec

__version__ = _version()

# Loaded when they are first used; __init__.pyi has their types. No module has the name of its function: once imported,
# it would take the function's place.
_NEEDS_TORCH = {
    "compile": "dynamo.compiler",
    "CompileOptions": "dynamo.options",
    "CompileReport": "dynamo.report_of_graphs",
    "export": "exporter",
    "ExportOptions": "lowering.options",
    "Program": "lowering.program",
    "quantize": "quantizer",
}

__all__ = [
    "CancelledError", "CompileOptions", "CompileReport", "Device", "DeviceError", "Error", "ExportOptions",
    "InvalidFileError", "InvalidInputError", "ProfileRow", "Program", "Session", "TensorSpec", "UnsupportedError",
    "check", "compile", "devices", "export", "inspect", "load", "quantize", "why_no_devices",
]  # fmt: skip


def __dir__() -> list[str]:
    """The public names, those included that are loaded when they are first used: for dir() and completion."""
    return sorted([*__all__, "llm", *(name for name in globals() if name.startswith("__"))])


def __getattr__(name: str) -> Any:
    import importlib

    if name == "llm":  # a package of its own, which loads on first use, too
        return importlib.import_module("pumice.llm")
    if name not in _NEEDS_TORCH:
        raise AttributeError(f"module 'pumice' has no attribute '{name}'")
    try:
        value = getattr(importlib.import_module(f"pumice.{_NEEDS_TORCH[name]}"), name)
    except ModuleNotFoundError as error:
        if error.name in ("torch", "torchao", "flatbuffers", "xxhash"):
            raise Error(
                f"pumice.{name} needs {error.name}: pip install 'pumice[export]'", code="MissingPackage"
            ) from None
        raise
    globals()[name] = value
    return value
