# SPDX-License-Identifier: Apache-2.0
"""Functions between dequantize and quantize nodes, with a pattern of fusion/integers_*.py and without it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import torch
from torch.ao.quantization.fx import _decomposed  # noqa: F401 (registers torch.ops.quantized_decomposed)

from support import unfused

qd = torch.ops.quantized_decomposed
INPUT, RESULT = (0.0213, 5, -128, 127, torch.int8), (0.0291, 11, -128, 127, torch.int8)


def check_integers(
    function: Callable[..., torch.Tensor],
    *inputs: torch.Tensor,
    pattern: str,
    fused: dict[str, int],
    floats: dict[str, int],
    layers: tuple[torch.nn.Module, ...] = (),
    same: bool = False,
    taken: bool = False,
    steps: int = 0,
) -> None:
    """quantize(function(*layers, *dequantize(integers of inputs))). `floats`: the operators of the function itself.

    Without `pattern` alone as without all of them: nothing between the two nodes is then left to the others.
    `same`: the results have the scale and zero point of the inputs. `taken`: those operators take integers.
    """

    def between(*given: torch.Tensor) -> torch.Tensor:
        modules, integers = given[: len(layers)], given[len(layers) :]
        reals = [qd.dequantize_per_tensor(x, *INPUT) for x in integers]
        return qd.quantize_per_tensor(function(*modules, *reals), *(INPUT if same else RESULT))

    values = [qd.quantize_per_tensor(x, *INPUT) for x in inputs]
    around = Counter({"quantize": 1} | ({} if taken else {"dequantize": len(inputs)}))
    unfused.check_pattern(
        unfused.Function(between, *layers),
        *values,
        pattern=pattern,
        fused=fused,
        unfused=around + Counter(floats),
        steps=steps,
    )
