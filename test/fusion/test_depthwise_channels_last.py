# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
import torch
from support.unfused import Function, check_pattern
from torch import nn

import pumice

PATTERN = "depthwise_channels_last"


def _last(conv, x):
    """From channels last to channels last."""
    return conv(x.permute(0, 3, 1, 2)).permute(0, 2, 3, 1)


class Block(nn.Module):
    """Of ConvNeXt; the layer scale is before the permutation back, as transformers has it, or after it, as torchvision
    has it."""

    def __init__(self, channels: int, scaled_last: bool) -> None:
        super().__init__()
        self.scaled_last = scaled_last
        self.conv, self.norm = nn.Conv2d(channels, channels, 7, padding=3, groups=channels), nn.LayerNorm(channels)
        self.up, self.down = nn.Linear(channels, 2 * channels), nn.Linear(2 * channels, channels)
        scale = torch.linspace(-1, 1, channels)
        self.scale = nn.Parameter(scale.view(-1, 1, 1) if scaled_last else scale)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.norm(self.conv(x).permute(0, 2, 3, 1))
        y = self.down(nn.functional.gelu(self.up(y)))
        if self.scaled_last:
            return x + self.scale * y.permute(0, 3, 1, 2)
        return x + (self.scale * y).permute(0, 3, 1, 2)


@pytest.mark.parametrize(
    "conv",
    [
        {"kernel_size": 7, "padding": 3},
        {"kernel_size": (3, 5), "stride": (2, 3), "padding": (0, 2), "dilation": (2, 1)},
        {"kernel_size": (1, 16), "bias": False},
        {"kernel_size": (9, 3), "padding": "same"},
    ],
    ids=str,
)
def test_a_convolution(conv) -> None:
    torch.manual_seed(0)
    module = Function(_last, nn.Conv2d(12, 12, groups=12, **conv))
    ops = {"fused": {"conv2d_depthwise_channels_last": 1}, "unfused": {"permute": 2, "conv2d": 1}}
    check_pattern(module, torch.randn(2, 9, 17, 12), pattern=PATTERN, **ops)


def test_between_tokens() -> None:
    """The feed-forward of SegFormer."""
    torch.manual_seed(0)

    def mix(conv, x):
        return conv(x.transpose(1, 2).view(2, 8, 6, 7)).flatten(2).transpose(1, 2)

    fused = {"view": 2, "conv2d_depthwise_channels_last": 1}
    unfused = {"view": 2, "permute": 2, "conv2d": 1}
    conv = nn.Conv2d(8, 8, 3, padding=1, groups=8)
    check_pattern(Function(mix, conv), torch.randn(2, 42, 8), pattern=PATTERN, fused=fused, unfused=unfused)


def test_with_padding_and_norm() -> None:
    torch.manual_seed(0)
    norm = nn.BatchNorm2d(8)
    norm.running_mean, norm.running_var = torch.randn(8), torch.rand(8) + 0.5
    module = nn.Sequential(nn.ZeroPad2d((1, 0, 2, 1)), nn.Conv2d(8, 8, 3, groups=8), norm).eval()
    ops = {"fused": {"conv2d_depthwise_channels_last": 1}, "unfused": {"permute": 2, "conv2d": 1}}
    check_pattern(Function(_last, module), torch.randn(1, 6, 5, 8), pattern=PATTERN, **ops)


@pytest.mark.parametrize("scaled_last", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
def test_blocks_stay_channels_last(dtype, scaled_last) -> None:
    """Of fp16, eager rounds after each of some ten operators of each of three blocks, by 2^-11."""
    torch.manual_seed(0)
    module = nn.Sequential(*(Block(16, scaled_last) for _ in range(3))).to(dtype)
    common = {"layer_norm": 3, "linear": 6}
    check_pattern(
        module,
        torch.randn(2, 16, 9, 11, dtype=dtype),
        pattern=PATTERN,
        rtol=2e-5 if dtype is torch.float32 else 30 * 2**-11,
        fused={"conv2d_depthwise_channels_last": 3, "permute": 2, **common},
        unfused={"conv2d": 3, "permute": 8, **common},
    )


@pytest.mark.parametrize(
    ("function", "layers"),
    [
        (_last, [nn.Conv2d(6, 6, 3, groups=6)]),  # no whole vec4 groups
        (_last, [nn.Conv2d(8, 16, 3, groups=8)]),
        (_last, [nn.Conv2d(8, 8, 3, groups=4)]),
        (_last, [nn.Conv2d(8, 8, (1, 17), groups=8)]),  # too many columns for registers
        (lambda conv, x: (_last(conv, x), conv(x.permute(0, 3, 1, 2))), [nn.Conv2d(8, 8, 3, groups=8)]),  # read twice
        (lambda conv, x: conv(x.permute(0, 3, 1, 2)).permute(0, 3, 2, 1), [nn.Conv2d(8, 8, 3, groups=8)]),
    ],
)
def test_what_stays(function, layers) -> None:
    channels = layers[0].in_channels
    program = pumice.export(Function(function, *layers), (torch.randn(1, 9, 19, channels),))
    assert "conv2d_depthwise_channels_last" not in program.report.operators


def test_sums_that_nothing_reads_channels_last_stay() -> None:
    module = Function(lambda x, y: x + y.permute(0, 3, 1, 2))
    program = pumice.export(module, (torch.randn(1, 4, 5, 6), torch.randn(1, 5, 6, 4)))
    assert program.report.operators == {"permute": 1, "add": 1}


def test_a_sum_before_the_permutation() -> None:
    """What the convolution reads is permuted in front of it, though only the sum after it asks for that first."""
    torch.manual_seed(0)

    def function(conv, x, y):
        made = conv(x)
        total = x + y.permute(0, 3, 1, 2)
        return made.permute(0, 2, 3, 1) + total.permute(0, 2, 3, 1)

    module = Function(function, nn.Conv2d(8, 8, 3, padding=1, groups=8))
    fused = {"permute": 1, "conv2d_depthwise_channels_last": 1, "add": 2}
    unfused = {"permute": 3, "conv2d": 1, "add": 2}
    check_pattern(
        module, torch.randn(1, 8, 5, 6), torch.randn(1, 5, 6, 8), pattern=PATTERN, fused=fused, unfused=unfused
    )


def test_other_operands_stay() -> None:
    """Sizes, and tensors that broadcast to more dimensions."""
    rows = torch.export.Dim("rows", min=2, max=9)
    sizes = Function(lambda x: (x.permute(0, 3, 1, 2) * x.shape[0]).permute(0, 2, 3, 1))
    program = pumice.export(sizes, (torch.randn(2, 5, 6, 4),), dynamic_shapes={"inputs": ({0: rows},)})
    x = torch.randn(3, 5, 6, 4)
    assert torch.equal(pumice.load(bytes(program))(x), x * 3)
    more = Function(lambda x, y: (y + x.permute(0, 3, 1, 2)).sum(2))
    check_pattern(
        more,
        torch.randn(1, 1, 1, 4),
        torch.randn(2, 4, 4, 5, 6),
        pattern=PATTERN,
        fused={"view": 1, "add": 1, "sum": 1},
        unfused={"view": 1, "add": 1, "sum": 1},
    )
