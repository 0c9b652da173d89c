# SPDX-License-Identifier: Apache-2.0
"""Triangles of matrices: triu, tril."""

from __future__ import annotations

import torch

from pumice.lowering.call import Call
from pumice.lowering.registry import lowers

aten = torch.ops.aten


@lowers(aten.triu.default)
def triu(call: Call) -> None:
    call.emit("triu", call.tensor("self"), call["diagonal"])


@lowers(aten.tril.default)
def tril(call: Call) -> None:
    call.emit("tril", call.tensor("self"), call["diagonal"])
