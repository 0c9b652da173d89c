# SPDX-License-Identifier: Apache-2.0
"""A decoder without its weights: transformers' module with tensors that were never written to, so they take no memory,
and for each of them what reads it when the file is written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AutoModelForCausalLM
from transformers.initialization import no_init_weights
from transformers.pytorch_utils import Conv1D
from transformers.utils.logging import disable_progress_bar

from pumice.llm.quantized import Read, Scheme, quantize_layer
from pumice.llm.rope import replace_rotary

disable_progress_bar()
_POSITIONS = ("wpe", "embed_positions")  # embeddings of positions, which stay floats


@dataclass
class Skeleton:
    """`model`: the module; `weights`: what reads its parameters and buffers, by their names in the module; `wanted`:
    the names of each weight that a checkpoint must have, and its shape there."""

    model: nn.Module
    weights: dict[str, Read]
    wanted: list[tuple[list[str], list[int]]]


@dataclass(frozen=True)
class Quantization:
    """Schemes of the linear layers and of the embedding; None keeps floats. `tied`: of a matrix that is both."""

    linear: Scheme | None
    embedding: Scheme | None
    tied: Scheme | None


def skeleton(
    config: Any, dtype: torch.dtype, max_seq: int, read: Callable[[Sequence[str]], Tensor], how: Quantization
) -> Skeleton:
    """read: gives the tensor that the checkpoint has for a parameter of transformers' module, by its names."""
    with no_init_weights():
        model = AutoModelForCausalLM.from_config(config, dtype=dtype, attn_implementation="pumice").eval()
    model.tie_weights()
    model.requires_grad_(False)
    transposed = _plain_linears(model)
    replace_rotary(model, max_seq, dtype)
    names = _by_tensor(model)
    weights: dict[str, Read] = {}
    wanted: list[tuple[list[str], list[int]]] = []
    for group in names:
        like = model.get_parameter(group[0])
        turned = like.dim() == 2 and group[0].rpartition(".")[0] in transposed
        wanted.append((group, list(like.shape)[::-1] if turned else list(like.shape)))
        weights.update(dict.fromkeys(group, _reader(read, group, like.dtype, turned)))
    _quantize(model, weights, {name for group in names if len(group) > 1 for name in group}, how)
    return Skeleton(model, weights, wanted)


def _plain_linears(model: nn.Module) -> set[str]:
    """Makes GPT-2's Conv1D, a linear layer whose weight is [K, N], a linear layer; returns their names."""
    found = [(name, layer) for name, layer in model.named_modules() if isinstance(layer, Conv1D)]
    for name, layer in found:
        with no_init_weights():
            linear = nn.Linear(layer.nx, layer.nf, dtype=layer.weight.dtype).requires_grad_(False)
        model.set_submodule(name, linear)
    return {name for name, _ in found}


def _by_tensor(model: nn.Module) -> list[list[str]]:
    """The names of each parameter: more than one where weights are tied."""
    names: dict[int, list[str]] = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        names.setdefault(id(parameter), []).append(name)
    return list(names.values())


def _reader(read: Callable[[Sequence[str]], Tensor], names: list[str], dtype: torch.dtype, turned: bool) -> Read:
    """`turned`: the checkpoint has the matrix transposed."""
    return lambda: (read(names).t() if turned else read(names)).to(dtype)


def _quantize(model: nn.Module, weights: dict[str, Read], tied: set[str], how: Quantization) -> None:
    """Quantizes in place; a matrix that is embedding and head is quantized once, and both have the same tensors."""
    shared: dict[int, nn.Module] = {}
    for name, layer in list(model.named_modules()):
        if not isinstance(layer, nn.Linear | nn.Embedding) or name.endswith(_POSITIONS):
            continue
        weight = f"{name}.weight"
        scheme = how.linear if isinstance(layer, nn.Linear) else how.embedding
        scheme = how.tied if weight in tied else scheme
        if scheme is None:
            continue
        read, key = weights.pop(weight), id(layer.weight)
        made = quantize_layer(layer, name, scheme, read)
        if weight in tied and (first := shared.setdefault(key, layer)) is not layer:
            layer.integers, layer.scale = first.integers, first.scale
        weights.update({f"{name}.{buffer}": made_read for buffer, made_read in made.items()})
