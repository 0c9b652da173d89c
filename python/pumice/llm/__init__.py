# SPDX-License-Identifier: Apache-2.0
"""Language models: from a Hugging Face folder to tokens generated on the device.

pumice.llm.export("Llama-3.2-1B", "llama.pumice", quantize="int4")     # needs torch and transformers
lm = pumice.llm.load("llama.pumice")                                   # does not
for text in lm.generate("Once upon a time"): print(text, end="")
"""

from __future__ import annotations

from typing import Any

# Loaded when they are first used; __init__.pyi has their types. No module has the name of its function.
_MODULES = {
    "export": "export_model",
    "LanguageModel": "language_model",
    "load": "language_model",
    "Sampling": "sampling",
}

__all__ = ["LanguageModel", "Sampling", "export", "load"]


def __dir__() -> list[str]:
    """The public names, those included that are loaded when they are first used: for dir() and completion."""
    return sorted([*__all__, *(name for name in globals() if name.startswith("__"))])


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'pumice.llm' has no attribute '{name}'")
    import importlib

    from pumice.errors import Error

    try:
        value = getattr(importlib.import_module(f"pumice.llm.{_MODULES[name]}"), name)
    except ModuleNotFoundError as error:
        if error.name in ("torch", "torchao", "transformers", "safetensors", "flatbuffers", "xxhash"):
            text = f"pumice.llm.{name} needs {error.name}: pip install 'pumice[export,llm]'"
            raise Error(text, code="MissingPackage") from None
        raise
    globals()[name] = value
    return value
