# SPDX-License-Identifier: Apache-2.0
"""The model of the pictures in docs/: a small image encoder, some of it in int8."""

from __future__ import annotations

import torch
from torch import nn

import pumice


class Encoder(nn.Module):
    """Patches of an image, two layers of a transformer, ten classes."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, 64, 8, stride=8)
        layer = nn.TransformerEncoderLayer(64, 4, 256, batch_first=True, norm_first=True, activation="gelu")
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(64, 10)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        x = self.patches(image).flatten(2).transpose(1, 2)
        x = self.encoder(x)
        return torch.softmax(self.head(x.mean(1)), -1)


def build() -> tuple[nn.Module, tuple[torch.Tensor]]:
    """What `pumice export` asks for."""
    torch.manual_seed(1)
    model = Encoder().eval()
    for weight in model.parameters():  # both layers of a TransformerEncoder begin as the same numbers
        nn.init.normal_(weight, std=0.1)
    pumice.quantize(model, "int8", filter=lambda module, name: name.endswith(("linear1", "linear2")))
    return model, (torch.randn(1, 3, 64, 64),)
