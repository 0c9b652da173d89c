# SPDX-License-Identifier: Apache-2.0
"""The table of what is made of other operators before the lowerings."""

from __future__ import annotations

from typing import Any

import torch

import pumice.decompositions
import pumice.ops  # noqa: F401 (fills the table of lowerings)
from pumice.decompositions.table import taken_apart
from pumice.lowering import registry


def decompositions(dropout: bool) -> Any:
    """torch's default table and ours, less what a lowering takes whole and less the quantized operators."""
    table = torch.export.default_decompositions()
    table.update(taken_apart(dropout))
    for target in registry.targets():
        if not isinstance(target, str):  # by name: the quantized ones, which go below
            table.pop(target, None)
    for target in [t for t in table if getattr(t, "namespace", "") in ("torchao", "quantized_decomposed")]:
        table.pop(target)
    return table
