# SPDX-License-Identifier: Apache-2.0
"""Finds out what kind of model the caller has."""

from __future__ import annotations

import os
from pathlib import Path

from torch import nn

from pumice.llm.expert_weights import with_experts
from pumice.llm.folder import open_folder
from pumice.llm.gguf import open_gguf
from pumice.llm.source import Source, bad, of_module


def open_source(model_or_path: nn.Module | str | os.PathLike[str]) -> Source:
    """A model in memory, a folder as transformers saves it, or a .gguf file.

    Raises InvalidInputError for what is missing or damaged.
    """
    if not isinstance(model_or_path, str | os.PathLike):
        return with_experts(of_module(model_or_path))
    path = Path(model_or_path)
    if path.is_dir():
        return with_experts(open_folder(path))
    if path.suffix == ".gguf" and path.is_file():
        return open_gguf(path)
    raise bad(f"there is no folder and no .gguf file '{path}'", path, "IoError")
