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

from pumice.llm.mixture import replace_mixtures
from pumice.llm.quantized import integer_layer, quantize_layer
from pumice.llm.rope import replace_rotary
from pumice.llm.weight_forms import Integers, Read, Scheme

disable_progress_bar()
_POSITIONS = ("wpe", "embed_positions")  # embeddings of positions, which stay floats


@dataclass
class Skeleton:
    """`model`: the module; `weights`: what reads its parameters and buffers, by their names in the module; `wanted`:
    the names of each weight that a checkpoint must have, and its shape there; `chosen`: what became of each weight of a
    linear layer or an embedding, by its first name; None: floats."""

    model: nn.Module
    weights: dict[str, Read]
    wanted: list[tuple[list[str], list[int]]]
    chosen: dict[str, Integers | Scheme | None]


# What a weight becomes, by its names, as the checkpoint has it: integers, a scheme for other quantized types, floats.
Stored = Callable[[Sequence[str]], Integers | Scheme | None]


@dataclass(frozen=True)
class Quantization:
    """Schemes of the linear layers and of the embedding; None keeps floats. `tied`: of a matrix that is both."""

    linear: Scheme | Stored | None
    embedding: Scheme | Stored | None
    tied: Scheme | Stored | None

    def of(self, layer: nn.Module, names: Sequence[str]) -> Integers | Scheme | None:
        """What becomes of the weight of a layer; `names`: more than one where it is tied."""
        own = self.linear if isinstance(layer, nn.Linear) else self.embedding
        chosen = self.tied if len(names) > 1 else own
        return chosen if chosen is None or isinstance(chosen, Scheme) else chosen(names)


def skeleton(
    config: Any,
    dtype: torch.dtype,
    max_seq: int,
    read: Callable[[Sequence[str]], Tensor],
    how: Quantization,
    rope_factors: Tensor | None = None,
) -> Skeleton:
    """read: gives the tensor that the checkpoint has for a parameter of transformers' module, by its names."""
    with no_init_weights():
        model = AutoModelForCausalLM.from_config(config, dtype=dtype, attn_implementation="pumice").eval()
    model.tie_weights()
    model.requires_grad_(False)
    replace_mixtures(model)
    transposed = _plain_linears(model)
    replace_rotary(model, max_seq, dtype, rope_factors)
    names = _by_tensor(model)
    weights: dict[str, Read] = {}
    wanted: list[tuple[list[str], list[int]]] = []
    for group in names:
        like = model.get_parameter(group[0])
        turned = like.dim() == 2 and group[0].rpartition(".")[0] in transposed
        wanted.append((group, list(like.shape)[::-1] if turned else list(like.shape)))
        weights.update(dict.fromkeys(group, _reader(read, group, like.dtype, turned)))
    chosen = _quantize(model, weights, {name: group for group in names for name in group}, how)
    return Skeleton(model, weights, wanted, chosen)


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


def _quantize(
    model: nn.Module, weights: dict[str, Read], names: dict[str, list[str]], how: Quantization
) -> dict[str, Integers | Scheme | None]:
    """Quantizes in place; a matrix that is embedding and head is quantized once, and both have the same tensors.
    Returns Skeleton.chosen."""
    tied: dict[str, nn.Module] = {}
    made_of: dict[str, Integers | Scheme | None] = {}
    for name, layer in list(model.named_modules()):
        if not isinstance(layer, nn.Linear | nn.Embedding) or name.endswith(_POSITIONS):
            continue
        group = names[f"{name}.weight"]
        chosen = made_of[group[0]] = how.of(layer, group)
        if chosen is None:
            continue
        read = weights.pop(f"{name}.weight")
        if isinstance(chosen, Integers):
            made = integer_layer(layer, chosen)
        else:
            made = quantize_layer(layer, name, chosen, read)
        first = tied.setdefault(group[0], layer)
        layer.integers, layer.scale, layer.zero = first.integers, first.scale, first.zero
        weights.update({f"{name}.{buffer}": made_read for buffer, made_read in made.items()})
    return made_of
