# SPDX-License-Identifier: Apache-2.0
"""embedding(weight, indices), with float or quantized weights; padding_idx means nothing when a model runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from pumice.op import lowers
from pumice.quantized_weight import quantized_weight

if TYPE_CHECKING:
    from pumice.lower import Call

aten = torch.ops.aten


@lowers(aten.embedding.default)
def embedding(call: Call) -> None:
    weight, index = call.tensor("weight"), call.tensor("indices")
    q = quantized_weight(call, weight)
    if q is None:
        call.emit("embedding", weight, index)
        return
    if q.out_dtype is not call.out.dtype:
        call.refuse(f"the embedding is {call.out.dtype.name}, its dequantized weight {q.out_dtype.name}")
    op = "embedding_q4gsw" if q.bits == 4 else "embedding_q8gsw"
    call.emit(op, q.data, q.scale, q.zero, index, q.group)
