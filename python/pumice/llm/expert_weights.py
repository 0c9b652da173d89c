# SPDX-License-Identifier: Apache-2.0
"""The weights of experts as one matrix [E * N, K], from whatever a checkpoint has: a matrix for each expert, as folders
mostly do, or all in one tensor [E, N, K], as transformers' modules do."""

from __future__ import annotations

import re
from dataclasses import replace

import torch
from torch import Tensor

from pumice.llm.source import Source, bad

_ONE = re.compile(r"(.*)\.(?:mlp|block_sparse_moe)\.experts\.(\d+)\.(\w+)\.weight")
_ALL = re.compile(r".*\.mlp\.experts\.(?:gate_up_proj|down_proj)")
_GATE = re.compile(r"(.*)\.block_sparse_moe\.gate\.weight")
# What a matrix is part of, and where: Mixtral's names, then all others'.
_PARTS = {
    "w1": ("gate_up_proj", 0),
    "w3": ("gate_up_proj", 1),
    "w2": ("down_proj", 0),
    "gate_proj": ("gate_up_proj", 0),
    "up_proj": ("gate_up_proj", 1),
    "down_proj": ("down_proj", 0),
}


def with_experts(source: Source) -> Source:
    """The same source, with the names that pumice.llm.mixture has; itself where there are no experts."""
    found: dict[str, dict[tuple[int, int], str]] = {}
    for name in source.names:
        if one := _ONE.fullmatch(name):
            whole, place = _PARTS.get(one[3], ("", 0))
            found.setdefault(f"{one[1]}.mlp.experts.{whole}.weight", {})[int(one[2]), place] = name
        elif _ALL.fullmatch(name):
            found[f"{name}.weight"] = {(0, 0): name}
        elif gate := _GATE.fullmatch(name):
            found[f"{gate[1]}.mlp.gate.weight"] = {(0, 0): name}
    if not found:
        return source

    def parts(name: str) -> list[str]:
        """The checkpoint's names of a weight, in the order of its rows."""
        if name not in found:
            return [name]
        places = sorted(found[name])
        experts, kinds = places[-1][0] + 1, 1 + max(place for _, place in places)
        for expert in range(experts):
            for place in range(kinds):
                if (expert, place) not in found[name]:
                    raise bad(f"the checkpoint has no part {place} of expert {expert} of '{name}'", name)
        return [found[name][place] for place in places]

    def shape(name: str) -> list[int]:
        shapes = [list(source.shape(part)) for part in parts(name)]
        if any(each != shapes[0] for each in shapes):
            raise bad(f"the experts of '{name}' have weights of several shapes", name, "WeightsMismatch")
        *rows, columns = [len(shapes) * shapes[0][0], *shapes[0][1:]]
        return [rows[0] * rows[1], columns] if len(rows) == 2 else [*rows, columns]

    def read(name: str) -> Tensor:
        tensors = [source.read(part) for part in parts(name)]
        if any(each.dtype is not tensors[0].dtype for each in tensors):
            raise bad(f"the experts of '{name}' are of several types", name)
        whole = tensors[0] if len(tensors) == 1 else torch.cat(tensors)
        return whole.flatten(0, 1) if whole.dim() == 3 else whole

    return replace(source, names={*source.names, *found}, read=read, shape=shape)
