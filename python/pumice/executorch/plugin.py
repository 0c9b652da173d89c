# SPDX-License-Identifier: Apache-2.0
"""Loads libpumice_executorch and registers its backend with the ExecuTorch of this process."""

from __future__ import annotations

import ctypes
import importlib.metadata
from pathlib import Path

from pumice.errors import Error

VERSION = "1.5"  # ExecuTorch's C++ interface has no stable ABI: cmake/executorch.cmake builds for this minor version
_LIBRARY = Path(__file__).with_name("libpumice_executorch.so")


def register() -> None:
    """Does nothing the second time; raises pumice.Error with what is wrong."""
    check_version(_installed())
    if not _LIBRARY.exists():
        raise _error(
            "MissingPackage", f"this build of Pumice has no {_LIBRARY.name}: build it with {_wanted()} installed"
        )
    # The runtime's registry is in a library that this import loads: the plugin then finds the same one.
    import executorch.extension.pybindings.portable_lib  # noqa: F401

    status = ctypes.CDLL(str(_LIBRARY)).pumice_executorch_register()
    if status:
        raise _error("Internal", f"ExecuTorch refused to register PumiceBackend: error {status}")


def check_version(installed: str | None) -> None:
    """Refuses every version of ExecuTorch but the one that the library was built for."""
    if installed is None or installed.split("+")[0].split(".")[:2] != VERSION.split("."):
        have = f"ExecuTorch {installed} is installed" if installed else "ExecuTorch is not installed"
        raise _error("MissingPackage", f"{have}; pumice.executorch needs {_wanted()}")


def _wanted() -> str:
    return f"ExecuTorch {VERSION} (pip install 'executorch=={VERSION}.*')"


def _installed() -> str | None:
    try:
        return importlib.metadata.version("executorch")
    except importlib.metadata.PackageNotFoundError:
        return None


def _error(code: str, text: str) -> Error:
    return Error(text, code=code, stage="executorch")
