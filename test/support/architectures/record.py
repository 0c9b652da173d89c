# SPDX-License-Identifier: Apache-2.0
"""What the records of this package are made of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

Made = tuple[nn.Module, list[tuple[Any, ...]]]  # the model, and the calls of one session in turn


@dataclass(frozen=True)
class Architecture:
    """refused: a part of the reason where export refuses the model, and `instead`, what to do."""

    name: str
    part: str
    make: Callable[[], Made]
    refused: str = ""
    instead: str = ""


class Part(nn.Module):
    """A call of a part of a model, or a choice of its results."""

    def __init__(self, model: nn.Module, call: Callable[..., Any]) -> None:
        super().__init__()
        self.model, self.call = model, call

    def forward(self, *inputs: torch.Tensor) -> Any:
        return self.call(self.model, *inputs)


@torch.no_grad()
def trained(model: nn.Module) -> nn.Module:
    """As training leaves one, in eval mode: every result of a layer is about as large as its input, and no vector is
    the same number everywhere. A new model's scores may all be equal, and equal scores have no order."""
    for parameter in model.parameters():
        if parameter.ndim > 1:
            parameter.copy_(torch.randn_like(parameter) * parameter[0].numel() ** -0.5)
        else:
            parameter += 0.1 * torch.randn_like(parameter)
    return model.eval()


def tokens(*shape: int, vocabulary: int = 60) -> torch.Tensor:
    return torch.randint(0, vocabulary, shape)
