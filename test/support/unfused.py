# SPDX-License-Identifier: Apache-2.0
"""A model with a fusion pattern and without it: other operators, the same results."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

import pumice

CHAIN = "elementwise_chain"


class Function(torch.nn.Module):
    """A function of tensors as a module; `layers` are its parameters."""

    def __init__(self, function: Callable[..., Any], *layers: torch.nn.Module) -> None:
        super().__init__()
        self.function, self.layers = function, torch.nn.ModuleList(layers)

    def forward(self, *inputs: torch.Tensor) -> Any:
        return self.function(*self.layers, *inputs)


def check_pattern(
    module: torch.nn.Module,
    *inputs: torch.Tensor,
    pattern: str,
    fused: Mapping[str, int],
    unfused: Mapping[str, int],
    rtol: float = 2e-6,
    steps: int = 0,
) -> None:
    """Exports with and without `pattern` and runs both. `fused`, `unfused`: all operators that are then called.

    Floats differ by `rtol` of the largest result at most, both from each other and from eager PyTorch, integers by
    `steps`.
    """
    with torch.no_grad():
        want = _tensors(module(*inputs))
    results = []
    alone = () if pattern == CHAIN else (CHAIN,)  # would take what the pattern leaves
    for without, operators in ((alone, fused), ((*alone, pattern), unfused)):
        program = pumice.export(module, inputs, options={"without_fusion": without})
        assert program.report.operators == dict(operators), f"without {without}: {program.report.operators}"
        results.append(_tensors(pumice.load(bytes(program))(*inputs)))
    for a, b, c in zip(*results, want, strict=True):
        _near(a, b, rtol, steps)
        _near(a, c, rtol, steps)


def _near(a: torch.Tensor, b: torch.Tensor, rtol: float, steps: int) -> None:
    assert (a.shape, a.dtype) == (b.shape, b.dtype)
    assert torch.isfinite(a).all()
    limit = rtol * float(b.abs().max()) if a.is_floating_point() else steps
    worst = float((a.double() - b.double()).abs().max())
    assert worst <= limit, f"off by {worst:.3g}, {limit:.3g} are allowed"


def _tensors(value: Any) -> list[torch.Tensor]:
    return [value] if isinstance(value, torch.Tensor) else [tensor for part in value for tensor in _tensors(part)]
