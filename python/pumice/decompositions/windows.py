# SPDX-License-Identifier: Apache-2.0
"""Windows of a signal added up where they came from."""

from __future__ import annotations

import torch

from pumice.decompositions.table import takes_apart

aten = torch.ops.aten


@takes_apart(aten.unfold_backward.default)
def unfold_backward(grad_in: torch.Tensor, input_sizes: list[int], dim: int, size: int, step: int) -> torch.Tensor:
    """Each window is cut into pieces of `step` elements; all first pieces beside each other are a signal, and so are
    all second ones, one piece later. torch's own form adds element by element of the window."""
    if not input_sizes:
        return grad_in.squeeze(0)
    dim %= len(input_sizes)
    windows = grad_in.movedim(dim, -2)
    count, pieces = windows.shape[-2], -(-size // step)
    windows = torch.nn.functional.pad(windows, (0, pieces * step - size))
    total = None
    for piece in range(pieces):
        signal = windows[..., piece * step : (piece + 1) * step].flatten(-2)
        signal = torch.nn.functional.pad(signal, (piece * step, (pieces - 1 - piece) * step))
        total = signal if total is None else total + signal
    length = (count + pieces - 1) * step
    fitted = torch.nn.functional.pad(total, (0, input_sizes[dim] - length))
    return fitted.movedim(-1, dim)
