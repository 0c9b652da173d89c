# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
import torch
from support.integer_patterns import qd
from support.squeeze_excite import SqueezeExcite
from support.unfused import Function, check_pattern
from torch import nn
from torch.nn import functional as F
from transformers import EfficientNetConfig
from transformers.models.efficientnet.modeling_efficientnet import EfficientNetBlock
from transformers.models.regnet.modeling_regnet import RegNetSELayer

import pumice

PATTERN = "squeeze_excite"
MEAN = {"mean": 1, "mul": 1}
FUSED = {**MEAN, "squeeze_excite": 1, "view": 2}


def image(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(2))


@pytest.mark.parametrize("act", [F.relu, F.silu, F.hardswish, F.relu6])
def test_convolutions(act) -> None:
    torch.manual_seed(0)
    unfused = {**MEAN, "conv2d": 2, "sigmoid": 1}
    check_pattern(SqueezeExcite(12, 3, act=act), image(2, 12, 5, 7), pattern=PATTERN, fused=FUSED, unfused=unfused)


def test_hardsigmoid() -> None:
    """As torchvision's MobileNetV3 has it; without the pattern the second convolution applies it."""
    torch.manual_seed(0)
    module = SqueezeExcite(24, 8, act=nn.ReLU(), gate=nn.Hardsigmoid(), bias=True)
    check_pattern(module, image(1, 24, 6, 5), pattern=PATTERN, fused=FUSED, unfused={**MEAN, "conv2d": 2})


@pytest.mark.parametrize("bias", [True, False])
def test_linear_layers(bias) -> None:
    torch.manual_seed(0)
    module = SqueezeExcite(12, 3, act=F.relu, bias=bias, linear=True)
    unfused = {**MEAN, "linear": 2, "sigmoid": 1, "view": 3}
    fused = {**FUSED, "view": 3}
    check_pattern(module, image(2, 12, 5, 7), pattern=PATTERN, fused=fused, unfused=unfused)


def test_one_dimension() -> None:
    torch.manual_seed(0)
    layers = nn.Conv1d(10, 4, 1), nn.Conv1d(4, 10, 1, bias=False)
    module = Function(lambda a, b, x: torch.sigmoid(b(F.gelu(a(x)))), *layers)
    fused, unfused = {"squeeze_excite": 1, "view": 2}, {"conv2d": 2, "sigmoid": 1, "view": 4}
    check_pattern(module, image(3, 10, 1), pattern=PATTERN, fused=fused, unfused=unfused)


def test_an_efficientnet_block() -> None:
    torch.manual_seed(0)
    sizes = {"in_dim": 16, "out_dim": 16, "stride": 1, "expand_ratio": 6, "kernel_size": 3}
    config, more = EfficientNetConfig(), {"drop_rate": 0.0, "id_skip": False, "adjust_padding": True}
    block = EfficientNetBlock(config, **sizes, **more).eval()
    around = {"conv2d": 3, **MEAN, "add": 1}
    unfused = {**around, "conv2d": 5, "sigmoid": 1}
    fused = {**around, "squeeze_excite": 1, "view": 2}
    check_pattern(block, image(1, 16, 9, 9), pattern=PATTERN, fused=fused, unfused=unfused)


def test_a_regnet_layer() -> None:
    torch.manual_seed(0)
    unfused = {**MEAN, "conv2d": 2, "sigmoid": 1}
    check_pattern(RegNetSELayer(20, 5), image(1, 20, 4, 4), pattern=PATTERN, fused=FUSED, unfused=unfused)


def test_fp16() -> None:
    """A result of fp16 is rounded; without the pattern the hidden values and what the gate takes are, too."""
    torch.manual_seed(0)
    unfused = {**MEAN, "conv2d": 2, "sigmoid": 1}
    module, x = SqueezeExcite(12, 3).half(), image(2, 12, 5, 7).half()
    check_pattern(module, x, pattern=PATTERN, fused=FUSED, unfused=unfused, rtol=3 * 2**-11)


class Integers(nn.Module):
    """A convolution of one pixel with int8 weights."""

    def __init__(self, columns: int, rows: int) -> None:
        super().__init__()
        self.register_buffer("weight", torch.randint(-127, 128, (rows, columns, 1, 1), dtype=torch.int8))
        self.register_buffer("scale", torch.rand(rows) * 0.01 + 0.001)
        self.register_buffer("zero", torch.zeros(rows, dtype=torch.int64))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.conv2d(x, qd.dequantize_per_channel(self.weight, self.scale, self.zero, 0, -127, 127, torch.int8))


def read_twice(a: nn.Module, b: nn.Module, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    hidden = F.relu(a(x))
    return torch.sigmoid(b(hidden)), hidden


def gate(a: nn.Module, b: nn.Module, x: torch.Tensor) -> torch.Tensor:
    return torch.sigmoid(b(F.relu(a(x))))


FLOATS = {"conv2d": 2, "sigmoid": 1}
OTHERS = {
    "a larger plane": (gate, nn.Conv2d(8, 2, 1), nn.Conv2d(2, 8, 1), (1, 8, 2, 1), FLOATS),
    "a padded plane": (gate, nn.Conv2d(8, 2, 1, padding=1), nn.Conv2d(2, 8, 1), (1, 8, 1, 1), FLOATS),
    "groups": (gate, nn.Conv2d(8, 2, 1, groups=2), nn.Conv2d(2, 8, 1), (1, 8, 1, 1), FLOATS),
    "a window of 3": (gate, nn.Conv2d(8, 2, 3, padding=1), nn.Conv2d(2, 8, 1), (1, 8, 1, 1), FLOATS),
    "another number of channels": (gate, nn.Conv2d(8, 2, 1), nn.Conv2d(2, 9, 1), (1, 8, 1, 1), FLOATS),
    "transposed": (gate, nn.ConvTranspose2d(8, 2, 1), nn.Conv2d(2, 8, 1), (1, 8, 1, 1), FLOATS),
    "read twice": (read_twice, nn.Conv2d(8, 2, 1), nn.Conv2d(2, 8, 1), (1, 8, 1, 1), FLOATS),
    "too large": (gate, nn.Conv2d(1024, 520, 1), nn.Conv2d(520, 1024, 1), (1, 1024, 1, 1), FLOATS),
    "too many hidden values": (gate, nn.Conv2d(4, 1028, 1), nn.Conv2d(1028, 4, 1), (1, 4, 1, 1), FLOATS),
    "many rows": (gate, nn.Conv2d(8, 2, 1), nn.Conv2d(2, 8, 1), (513, 8, 1, 1), FLOATS),
    "no pooling": (gate, nn.Linear(8, 2), nn.Linear(2, 8), (3, 8), {"linear": 2, "sigmoid": 1}),
    "one layer": (lambda a, b, x: torch.sigmoid(F.relu(a(x))), nn.Conv2d(8, 2, 1), nn.Identity(), (1, 8, 1, 1),
                  {"conv2d": 1, "sigmoid": 1}),
    "int8": (gate, Integers(8, 2), Integers(2, 8), (1, 8, 1, 1), {"conv2d_q8csw": 2, "sigmoid": 1}),
    "one of int8": (gate, nn.Conv2d(8, 2, 1), Integers(2, 8), (1, 8, 1, 1),
                    {"conv2d": 1, "conv2d_q8csw": 1, "sigmoid": 1}),
}  # fmt: skip


@pytest.mark.parametrize("name", OTHERS)
def test_others_stay(name) -> None:
    torch.manual_seed(0)
    function, first, second, shape, ops = OTHERS[name]
    module = Function(function, first, second)
    check_pattern(module, image(*shape), pattern=PATTERN, fused=ops, unfused=ops, rtol=2e-5)


def test_quantized_linear_layers_stay() -> None:
    torch.manual_seed(0)
    module = SqueezeExcite(64, 32, act=F.relu, linear=True)
    pumice.quantize(module, "int8")
    ops = {**MEAN, "linear_q8csw": 2, "sigmoid": 1, "view": 3}
    check_pattern(module, image(1, 64, 3, 3), pattern=PATTERN, fused=ops, unfused=ops, rtol=2e-5)
