# SPDX-License-Identifier: Apache-2.0
"""Results within what roundings explain: the suite's own tolerances (0.1 + 4 %, 0.001 + 10 %) let wrong ones pass."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.utils._pytree import tree_leaves

from support.operator_roundings import explained

# Tests of which PyTorch itself leaves the result open: they are compared as the suite does.
OPEN = {
    "test_embedding_bag_include_last_offset": "the last offset is not the number of indices: fp32 and fp64 disagree",
}


class NotExplained(AssertionError):
    """worst: how many times the error is what roundings explain."""

    def __init__(self, worst: float) -> None:
        super().__init__(f"an error of {worst:.3g} times what roundings explain")
        self.worst = worst


def check(program: ExportedProgram, inputs: Sequence[Any], got: Any, network: bool = False) -> float:
    """The largest error by the largest that roundings explain, at most 1; of a network, of which two runs with random
    errors are enough, in norms.

    program: as torch.export made it, which nobody has run on these inputs. Raises NotExplained.
    """
    eager = tree_leaves(_eager(program, inputs))
    answer = explained(program, inputs, runs=2 if network else 16)
    worst = answer.worst(tree_leaves(got), eager, whole=network)
    if not worst <= 1:
        raise NotExplained(worst)
    return worst


@torch.no_grad()
def _eager(program: ExportedProgram, inputs: Sequence[Any]) -> Any:
    return program.module(check_guards=False)(*copy.deepcopy(tuple(inputs)))
