# SPDX-License-Identifier: Apache-2.0
"""Where a model comes from: its configuration, its weights one at a time, and the texts that travel in the file."""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from pumice.errors import InvalidInputError
from pumice.llm.texts import Texts
from pumice.llm.weight_forms import Integers, Scheme

FLOATS = (torch.float32, torch.float16, torch.bfloat16)


@dataclass
class Source:
    """`config`: transformers' configuration; `names`: of the weights that `read` gives, one at a time,
    `shape` their shapes. Of a quantized checkpoint, `stored`: what a weight becomes if nothing else is asked for
    (skeleton.Stored), `kind`: the name of its type, None for floats. `rope_factors`: what the frequencies of the rotary
    embedding are divided by."""

    config: Any
    names: Collection[str]
    read: Callable[[str], Tensor]
    shape: Callable[[str], list[int]]
    texts: Texts
    stored: Callable[[str], Integers | Scheme | None] | None = None
    kind: Callable[[str], str | None] = lambda name: None
    rope_factors: Tensor | None = None

    def find(self, names: Iterable[str]) -> str:
        """The checkpoint's name of a weight that transformers calls by one of `names`; some checkpoints leave the name
        of the inner module out. Raises InvalidInputError when it is not there."""
        names = list(names)
        spellings = (spelling for name in names for spelling in _spellings(name))
        found = next((spelling for spelling in spellings if spelling in self.names), None)
        if found is None:
            raise bad(f"the checkpoint has no weight '{names[0]}'", names[0])
        return found

    def check(self, names: Iterable[str], shape: list[int]) -> None:
        """Raises InvalidInputError when a weight is not there or has another shape, without reading it."""
        name = self.find(names)
        if (found := list(self.shape(name))) != shape:
            raise bad(f"the weight '{name}' is {found}, the configuration asks for {shape}", name, "WeightsMismatch")

    def weight(self, names: Iterable[str]) -> Tensor:
        """The weight that transformers calls by one of `names` (several where it is tied)."""
        name = self.find(names)
        tensor = self.read(name)
        if tensor.dtype not in FLOATS:
            known = ", ".join(str(dtype).removeprefix("torch.") for dtype in FLOATS)
            raise bad(f"the weight '{name}' is {str(tensor.dtype).removeprefix('torch.')}; known: {known}", name)
        return tensor


def _spellings(name: str) -> list[str]:
    _, _, inner = name.partition(".")
    return [name, inner, f"language_model.{name}", f"model.language_model.{inner}"]


def bad(text: str, path: object, code: str = "InvalidArgument") -> InvalidInputError:
    """The error of a source that cannot be exported."""
    return InvalidInputError(text, code=code, path=str(path))


def of_module(model: nn.Module) -> Source:
    """A transformers model in memory."""
    config = getattr(model, "config", None)
    if config is None or not hasattr(config, "model_type"):
        text = f"expected a folder, a .gguf file or a model of transformers, got {type(model).__name__}"
        raise bad(text, "model_or_path")
    state = model.state_dict()
    quantized = [name for name, tensor in state.items() if type(tensor) not in (Tensor, nn.Parameter)]
    if quantized:
        raise bad(f"'{quantized[0]}' is quantized already: give the float model, and quantize=", quantized[0])
    return Source(copy.deepcopy(config), state.keys(), state.__getitem__, lambda name: list(state[name].shape), Texts())
