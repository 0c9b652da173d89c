# SPDX-License-Identifier: Apache-2.0
"""The trained byte-level model: as a folder (kept in build/llm), in eager PyTorch, and as files."""

from __future__ import annotations

import copy
import functools
import os
from collections.abc import Callable
from pathlib import Path

import pytest
import tiny_llama
import torch
from filelock import FileLock
from transformers import AutoModelForCausalLM

import pumice


@pytest.fixture(scope="session")
def tiny() -> Path:
    return tiny_llama.folder()


@pytest.fixture(scope="session")
def eager(tiny) -> Callable[[str], torch.nn.Module]:
    """The model in eager PyTorch by the scheme; head and embedding are one matrix, quantized once."""
    floats = AutoModelForCausalLM.from_pretrained(tiny, attn_implementation="eager").eval()

    @functools.cache
    def made(scheme: str) -> torch.nn.Module:
        model = copy.deepcopy(floats)
        if scheme != "none":
            model.lm_head.weight = torch.nn.Parameter(model.lm_head.weight.detach().clone())
            pumice.quantize(model, scheme)
            model.model.embed_tokens.weight = torch.nn.Parameter(model.lm_head.weight.dequantize(), False)
        return model

    return made


@pytest.fixture(scope="session")
def file(tiny, tmp_path_factory) -> Callable[..., Path]:
    """The model's file by the scheme and the batch, exported once by all processes of the run."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "llm"
    folder.mkdir(exist_ok=True)

    @functools.cache
    def made(scheme: str, batch: int = 1) -> Path:
        path = folder / f"{scheme}-{batch}.pumice"
        with FileLock(path.with_suffix(".lock")):
            if not path.exists():
                pumice.llm.export(tiny, path.with_suffix(".partial"), quantize=scheme, batch=batch)
                path.with_suffix(".partial").rename(path)
        return path

    return made


@pytest.fixture(scope="session")
def lm(file) -> Callable[..., pumice.llm.LanguageModel]:
    return functools.cache(lambda scheme, batch=1: pumice.llm.load(file(scheme, batch)))
