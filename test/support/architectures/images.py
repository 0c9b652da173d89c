# SPDX-License-Identifier: Apache-2.0
"""Detection, windows, and video."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import transformers as t
from torch import nn

from support.architectures.record import Architecture, Made, Part, trained

_STAGES = {
    "embedding_size": 8, "hidden_sizes": [8, 16, 24, 32], "depths": [1, 1, 1, 1], "layer_type": "basic",
    "out_features": ["stage2", "stage3", "stage4"],
}  # fmt: skip
_DETECTOR = {
    "d_model": 32, "encoder_ffn_dim": 32, "decoder_ffn_dim": 32, "encoder_attention_heads": 4, "num_queries": 6,
    "decoder_attention_heads": 4, "encoder_layers": 1, "num_labels": 5, "decoder_n_points": 2,
    "use_timm_backbone": False,
}  # fmt: skip
_SWIN = {
    "image_size": 32, "patch_size": 2, "embed_dim": 16, "depths": [2, 2], "num_heads": [2, 4], "window_size": 4,
    "num_labels": 5,
}  # fmt: skip
_VIDEO = {
    "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64, "image_size": 32,
    "num_frames": 4,
}  # fmt: skip


def _boxes(model: nn.Module, pixels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    found = model(pixels)
    return found.logits, found.pred_boxes


def rt_detr() -> Made:
    backbone = t.RTDetrResNetConfig(**_STAGES)
    sizes = {
        "encoder_in_channels": [16, 24, 32],
        "encoder_hidden_dim": 32,
        "decoder_in_channels": [32] * 3,
        "anchor_image_size": None,
    }
    model = t.RTDetrForObjectDetection(t.RTDetrConfig(backbone_config=backbone, decoder_layers=1, **_DETECTOR, **sizes))
    return Part(trained(model), _boxes), [(torch.randn(1, 3, 64, 64),)]


def deformable_detr() -> Made:
    sizes = {"num_feature_levels": 3, "encoder_n_points": 2, "decoder_layers": 2}
    config = t.DeformableDetrConfig(backbone_config=t.ResNetConfig(**_STAGES), **_DETECTOR, **sizes)
    return Part(trained(t.DeformableDetrForObjectDetection(config)), _boxes), [(torch.randn(1, 3, 64, 64),)]


def _first(config: Any, model: Callable[[Any], nn.Module], *shape: int) -> Callable[[], Made]:
    """The first result of a model, of one input of a shape."""
    return lambda: (Part(trained(model(config)), lambda model, x: model(x)[0]), [(torch.randn(shape),)])


class Block(nn.Module):
    """Two convolutions beside a way round, in space and time at once or one after the other."""

    def __init__(self, inner: int, outer: int, stride: int, apart: bool) -> None:
        super().__init__()
        self.first, self.second = _convolution(inner, outer, stride, apart), _convolution(outer, outer, 1, apart)
        self.norms = nn.ModuleList(nn.BatchNorm3d(outer) for _ in range(2))
        self.round = nn.Conv3d(inner, outer, 1, stride, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        inside = self.norms[1](self.second(self.norms[0](self.first(x)).relu()))
        return (inside + self.round(x)).relu()


def _convolution(inner: int, outer: int, stride: int, apart: bool) -> nn.Module:
    if not apart:
        return nn.Conv3d(inner, outer, 3, stride, 1, bias=False)
    space = nn.Conv3d(inner, outer, (1, 3, 3), (1, stride, stride), (0, 1, 1), bias=False)
    return nn.Sequential(space, nn.ReLU(), nn.Conv3d(outer, outer, (3, 1, 1), (stride, 1, 1), (1, 0, 0), bias=False))


def video_resnet(apart: bool) -> Callable[[], Made]:
    """As torchvision's r3d_18 and r2plus1d_18 are built, with a pool of I3D and S3D."""

    def make() -> Made:
        stem = nn.Conv3d(3, 8, (3, 7, 7), (1, 2, 2), (1, 3, 3), bias=False)
        head = nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(24, 5)
        blocks = Block(8, 16, 1, apart), nn.MaxPool3d(3, (1, 2, 2), 1), Block(16, 24, 2, apart)
        model = nn.Sequential(stem, nn.BatchNorm3d(8), nn.ReLU(), *blocks, *head)
        return trained(model), [(torch.randn(1, 3, 4, 32, 32),)]

    return make


IMAGES = (
    Architecture("RT-DETR", "boxes and classes", rt_detr),
    Architecture("Deformable DETR", "boxes and classes", deformable_detr),
    Architecture("Swin", "classes", _first(t.SwinConfig(**_SWIN), t.SwinForImageClassification, 2, 3, 32, 32)),
    Architecture("Swin V2", "classes", _first(t.Swinv2Config(**_SWIN), t.Swinv2ForImageClassification, 2, 3, 32, 32)),
    Architecture(
        "VideoMAE", "encoder",
        _first(t.VideoMAEConfig(patch_size=8, tubelet_size=2, **_VIDEO), t.VideoMAEModel, 1, 4, 3, 32, 32),
    ),
    Architecture("R3D, a ResNet of videos", "classes", video_resnet(apart=False)),
    Architecture("R(2+1)D", "classes", video_resnet(apart=True)),
)  # fmt: skip
