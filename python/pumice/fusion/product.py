# SPDX-License-Identifier: Apache-2.0
"""`Product`: a linear layer that may become a part of a larger product."""

from __future__ import annotations

from dataclasses import dataclass

from pumice.lowering.call import Call
from pumice.lowering.ref import Ref


@dataclass(frozen=True)
class Product:
    """x @ weight.T + bias of the node of `call`: x [..., K]; weight [N, K], also dequantized; bias [N], or None."""

    call: Call
    x: Ref
    weight: Ref
    bias: Ref | None
