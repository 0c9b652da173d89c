# SPDX-License-Identifier: Apache-2.0
"""Architectures of image models as transformers has them, with random weights."""

from __future__ import annotations

import torch
import transformers as t
from torch import nn

CLASSES = {"num_labels": 1000}
RESNET18 = {"layer_type": "basic", "hidden_sizes": [64, 128, 256, 512], "depths": [2, 2, 2, 2]}
# With weights of 0.02 the output of each layer would be smaller than the eps of its batch norm.
EFFICIENTNET_B0 = {"width_coefficient": 1.0, "depth_coefficient": 1.0, "hidden_dim": 1280, "initializer_range": 0.2}
VIT_SMALL = {"hidden_size": 384, "num_attention_heads": 6, "intermediate_size": 1536}
# The others are their configuration's default; ConvNeXt's factor of 10^-6 would leave nothing of its blocks.
NETWORKS = {
    "ResNet-18": lambda: t.ResNetForImageClassification(t.ResNetConfig(**RESNET18, **CLASSES)),
    "ResNet-50": lambda: t.ResNetForImageClassification(t.ResNetConfig(**CLASSES)),
    "MobileNetV2": lambda: t.MobileNetV2ForImageClassification(t.MobileNetV2Config(**CLASSES)),
    "EfficientNet-B0": lambda: t.EfficientNetForImageClassification(t.EfficientNetConfig(**EFFICIENTNET_B0, **CLASSES)),
    "ConvNeXt-tiny": lambda: t.ConvNextForImageClassification(t.ConvNextConfig(layer_scale_init_value=1.0, **CLASSES)),
    "ViT-small": lambda: t.ViTForImageClassification(t.ViTConfig(**VIT_SMALL, **CLASSES)),
    "SegFormer-B0": lambda: t.SegformerForSemanticSegmentation(t.SegformerConfig(**CLASSES)),
    "MobileViT": lambda: t.MobileViTForImageClassification(t.MobileViTConfig(**CLASSES)),
}


class Logits(nn.Module):
    """Of pixels: transformers' models return a dataclass."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        return self.model(pixel_values=pixels).logits


def images(size: int, batch: int = 1, seed: int = 1) -> torch.Tensor:
    return torch.randn(batch, 3, size, size, generator=torch.Generator().manual_seed(seed))


@torch.no_grad()
def network(name: str) -> nn.Module:
    """As training leaves one: every vector random, batch norms with the statistics of what they see."""
    torch.manual_seed(0)
    model = Logits(NETWORKS[name]())
    for parameter in model.parameters():
        if parameter.ndim == 1:
            parameter += 0.1 * torch.randn_like(parameter)
    norms = [module for module in model.modules() if isinstance(module, nn.BatchNorm2d)]
    for norm in norms:
        norm.momentum = None  # the mean of all batches, of one here
        norm.reset_running_stats()
    if norms:
        model.train()(images(96, 16, seed=2))
    return model.eval()
