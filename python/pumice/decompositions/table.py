# SPDX-License-Identifier: Apache-2.0
"""The table of what is taken apart: torch's own functions for some overloads, ours for others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch._decomp import decomposition_table

aten = torch.ops.aten

# What torch's default table leaves whole.
_BY_TORCH = (
    aten._batch_norm_with_update_functional.default,
    aten._native_batch_norm_legit_functional.default,
    aten.addmv.default,
    aten.dist.default,
    aten.ldexp.Tensor,
    aten.narrow_copy.default,
)
_DROPOUT = aten.native_dropout.default
_ours: dict[Any, Callable] = {}


def takes_apart(*targets: Any) -> Callable[[Callable], Callable]:
    """Registers a function for overloads; its arguments are those of their schema. An overload of a library that may
    not be loaded is given by its name."""

    def register(function: Callable) -> Callable:
        _ours.update(dict.fromkeys(targets, function))
        return function

    return register


def our_own() -> set[Any]:
    """The overloads whose functions are in this package."""
    return set(_loaded())


def _loaded() -> dict[Any, Callable]:
    """Without those of libraries that are not loaded: no model has them."""
    overloads = {_overload(target) if isinstance(target, str) else target: made for target, made in _ours.items()}
    return {target: made for target, made in overloads.items() if target is not None}


def _overload(name: str) -> Any:
    """None where no library has registered it."""
    library, operator, overload = name.split(".")
    packet = getattr(getattr(torch.ops, library), operator, None)
    return getattr(packet, overload, None)


def _dropout_in_eval(input: torch.Tensor, p: float, train: bool | None) -> Any:
    """In training it stays whole, and is refused by its name."""
    return decomposition_table[_DROPOUT](input, p, False) if train is False else NotImplemented


def taken_apart(dropout: bool) -> dict[Any, Callable]:
    """Overloads and what they are made of; with `dropout` that of a model in training, too. Importing
    `pumice.decompositions` fills the table."""
    of_dropout = decomposition_table[_DROPOUT] if dropout else _dropout_in_eval
    table = {target: decomposition_table[target] for target in _BY_TORCH} | {_DROPOUT: of_dropout} | _loaded()
    if not dropout:
        del table[aten.bernoulli.p]
    return table
